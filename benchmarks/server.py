"""How long an editor waits for the language server after a change; see README.md beside this file."""

from __future__ import annotations

import argparse
import asyncio
import math
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from lsprotocol import types
from pygls.lsp.client import LanguageClient

LINES = 1000
TIMES = 30
FUNCTION = """\
def step_{i}(model, loader, optimizer, device):
    total = 0.0
    for index, (inputs, targets) in enumerate(loader):
        inputs, targets = inputs.to(device), targets.to(device)
        outputs = model(inputs)
        loss = torch.nn.functional.cross_entropy(outputs, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        values = {call}(outputs[0], targets.float())
        total += loss.item() * inputs.size(0)
        if index % 100 == 0:
            print(f"step {{index}}: {{total / (index + 1):.3f}}", values.mean())
    return [total, model.state_dict()]


"""
OLD, NEW = "torch.ger", "torch.outer"


def program(lines: int, findings: int) -> str:
    """A file of some lines with some findings."""
    count = lines // FUNCTION.count("\n")
    parts = [FUNCTION.format(i=i, call=OLD if i < findings else NEW) for i in range(count)]
    return "import torch\n\n\n" + "".join(parts)


def cpu_seconds(pid: int) -> float:
    """What a process has used of the processor, where the system says so."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return math.nan
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def measured(text: str, times: int, pull: bool) -> tuple[float, list[float], float]:
    """Seconds until the first answer, those from each change to its answer, and those of the processor."""
    client = LanguageClient("benchmark", "1")
    answers: asyncio.Queue[int | None] = asyncio.Queue()

    @client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    def publish(params: types.PublishDiagnosticsParams) -> None:
        answers.put_nowait(params.version)

    with tempfile.TemporaryDirectory() as name:
        root = Path(name).resolve()
        start = time.perf_counter()
        await client.start_io(sys.executable, "-m", "torchmigrate", "server", cwd=name)
        text_document = types.TextDocumentClientCapabilities(
            diagnostic=types.DiagnosticClientCapabilities() if pull else None
        )
        await client.initialize_async(
            types.InitializeParams(
                types.ClientCapabilities(text_document=text_document), root_uri=root.as_uri()
            )
        )
        client.initialized(types.InitializedParams())
        uri = (root / "train.py").as_uri()

        async def answered(version: int) -> None:
            if pull:
                where = types.TextDocumentIdentifier(uri)
                await client.text_document_diagnostic_async(types.DocumentDiagnosticParams(where))
            else:
                while await answers.get() != version:
                    pass

        item = types.TextDocumentItem(uri, "python", 1, text)
        client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        await answered(1)
        first = time.perf_counter() - start
        line = text.count("\n")
        seconds = []
        assert client._server is not None
        used = cpu_seconds(client._server.pid)
        for version in range(2, times + 2):
            await asyncio.sleep(0.05)
            area = types.Range(types.Position(line, version - 2), types.Position(line, version - 2))
            began = time.perf_counter()
            client.text_document_did_change(
                types.DidChangeTextDocumentParams(
                    types.VersionedTextDocumentIdentifier(version=version, uri=uri),
                    [types.TextDocumentContentChangePartial(area, "x")],
                )
            )
            await answered(version)
            seconds.append(time.perf_counter() - began)
        used = (cpu_seconds(client._server.pid) - used) / times
        await client.shutdown_async(None)
        client.exit(None)
        await client.stop()
    return first, seconds, used


def main() -> None:
    """Print what one waits: for the first answer, and after a change."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=LINES)
    parser.add_argument("--times", type=int, default=TIMES, help="changes of each file")
    arguments = parser.parse_args()
    print(f"{arguments.lines} lines, {arguments.times} changes; milliseconds until the answer")
    print(f"{'findings':>8}  {'asked for':9}  {'first':>6}  {'median':>6}  {'slowest':>7}  {'CPU':>4}")
    for findings in (0, 10, arguments.lines // FUNCTION.count("\n")):
        for pull in (False, True):
            text = program(arguments.lines, findings)
            first, seconds, used = asyncio.run(measured(text, arguments.times, pull))
            row = (1000 * each for each in (first, statistics.median(seconds), max(seconds), used))
            shown = "  ".join(f"{each:>{size}.0f}" for each, size in zip(row, (6, 6, 7, 4), strict=True))
            print(f"{findings:>8}  {'yes' if pull else 'no':9}  {shown}")


if __name__ == "__main__":
    main()

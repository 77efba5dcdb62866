"""The steps of an upgrade, in order. Each can be done again: what is known already is not found out anew."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, ValidationError, convert, to_builtins
from msgspec.structs import replace

from torchmigrate.catalogue.codes import PINS
from torchmigrate.evidence.evidence import Warned, warnings_in
from torchmigrate.report.console import Console
from torchmigrate.report.reasons import sentence
from torchmigrate.report.summary import plural
from torchmigrate.report.warned import is_of_change, warned_lines
from torchmigrate.upgrade import smoke
from torchmigrate.upgrade.again import is_chosen_again, squashed, undone, without
from torchmigrate.upgrade.causes import Places, expects_old_call, is_other_result
from torchmigrate.upgrade.environment import Environment, EnvironmentOptions, given, made
from torchmigrate.upgrade.fixer import Exclusion, Exclusions, Fixer, hunks_of
from torchmigrate.upgrade.model import (
    Applied,
    FixGroup,
    Frame,
    Outcome,
    Report,
    TakenBack,
    TestRun,
    UpgradeError,
    broken,
    mended,
    not_passed,
)
from torchmigrate.upgrade.processes import Clock
from torchmigrate.upgrade.reach import Reach
from torchmigrate.upgrade.search import Search
from torchmigrate.upgrade.suite import COMMAND, Suite, words_of
from torchmigrate.upgrade.tools import tools_of
from torchmigrate.upgrade.workspace import Workspace
from torchmigrate.versions.releases import Version, show_version

_ROUNDS = 40  # how often something is taken back before all is
_SAMPLE = 40  # tests with which a guess is tried, each for another reason that they fail for
_MOST_TEXT = 160  # characters of one
_STAGES = 3  # how often more fixes are made by what the tests show once they get further
PYTEST = "pytest -q"


class UpgradeRequest(Struct, frozen=True):
    """The options of a run.

    to: the target. test: the command; None: pytest, where there are tests. environment: one that has the
    target; None: one is made by `options`. old_environment: one that has what the project ran on.
    call_functions: without tests, functions are called in both. evidence: the tests are recorded. also:
    other tools. work: the directory to work in; None: next to the project. resume: an earlier run goes on,
    with its options but for those of `given`, the names of the fields that the user chose. time_limit,
    test_timeout: seconds; None: no limit.
    """

    path: Path
    to: Version
    test: str | None = None
    environment: Path | None = None
    old_environment: Path | None = None
    call_functions: bool = False
    options: EnvironmentOptions = EnvironmentOptions()
    unsafe: bool = False
    evidence: bool = True
    also: Sequence[str] = ()
    work: Path | None = None
    resume: bool = False
    given: frozenset[str] = frozenset()
    jobs: int | None = None
    time_limit: float | None = None
    test_timeout: float = 300.0

    def check(self) -> None:
        """Raise UpgradeError if options contradict each other."""
        if self.call_functions and self.old_environment is None:
            raise UpgradeError("--call-functions compares with an old environment: add --old-env DIR")
        if self.call_functions and self.test is not None:
            raise UpgradeError("--call-functions is for projects without tests: remove --test")

    def resumed(self) -> UpgradeRequest:
        """The same with the options of an earlier run of this upgrade, where the user chose no others.

        Raises UpgradeError if the path is not a project.
        """
        to, values = Workspace.remembered(self.path, self.to if "to" in self.given else None, self.work)
        try:
            known = convert(values, _Kept)
        except ValidationError:  # as another version wrote them
            return self
        taken = {name: getattr(known, name) for name in _KEPT if name in values and name not in self.given}
        for name in ("environment", "old_environment"):
            if taken.get(name) is not None:
                taken[name] = Path(taken[name])
        chosen = {name: getattr(self.options, name) for name in _OPTIONS if name in self.given}
        return replace(self, **taken, to=to or self.to, options=replace(known.options, **chosen))

    def kept(self) -> dict[str, Any]:
        """What a run that goes on takes over, as JSON holds it."""
        found = {name: getattr(self, name) for name in (*_KEPT, "options")}
        for name in ("environment", "old_environment"):
            if found[name] is not None:
                found[name] = str(found[name].absolute())
        return dict(to_builtins(found))


_OPTIONS = EnvironmentOptions.__struct_fields__


class _Kept(Struct):
    """The options of an upgrade that a run that goes on takes over, as in `UpgradeRequest`."""

    test: str | None = None
    environment: str | None = None
    old_environment: str | None = None
    call_functions: bool = False
    unsafe: bool = False
    evidence: bool = True
    also: tuple[str, ...] = ()
    test_timeout: float = 300.0
    options: EnvironmentOptions = EnvironmentOptions()


_KEPT = tuple(name for name in _Kept.__struct_fields__ if name != "options")


class _Remembered(Struct):
    """What is kept for a run that goes on. exclusions: by the commit on which the fixes are made."""

    exclusions: dict[str, Exclusions]
    taken_back: list[TakenBack]


class Upgrade:
    """One upgrade."""

    def __init__(self, request: UpgradeRequest, console: Console) -> None:
        self.request = request
        self.console = console
        self.clock = Clock(request.time_limit)
        self.tools = tools_of(request.also)
        self.imports: list[smoke.Item] = []  # modules and scripts, which run instead of tests
        self.functions: list[smoke.Item] = []  # that are called in both environments
        self.is_verified = False  # whether there are tests that work
        self.space: Workspace
        self.taken_back: list[TakenBack] = []
        self.to_change: set[str] = set()  # tests that expect the old call of a mock
        self.in_vain: set[tuple[str, str]] = set()  # guesses whose fix mended no test: codes and files
        self.exclusions: dict[str, Exclusions] = {}  # by the commit on which the fixes are made

    def run(self) -> Report:
        """Do it all.

        Raises UpgradeError where it cannot be done, and OutOfTime when the time is over.
        """
        if self.request.resume:
            self.request = self.request.resumed()
        request = self.request
        self.tools = tools_of(request.also)
        request.check()
        # Check the options before anything is created.
        environment = None if request.environment is None else given(request.environment, request.to)
        old = None if request.old_environment is None else given(request.old_environment, None)
        self._check_command(request.test, environment, old)
        self.space = Workspace.open(
            *(request.path, request.to, request.work), resume=request.resume, options=request.kept()
        )
        self._say(
            f"working in {self.space.directory} on the branch {self.space.branch}; log: {self.space.log}"
        )
        for note in self.space.notes:
            self._say(note)
        self.fixer = self._fixer(unsafe=request.unsafe)
        try:
            return self._upgraded(environment, old)
        except UpgradeError as error:
            if self.is_verified:
                raise
            self.space.fail()
            again = "; --resume keeps the environment" if self.space.record("environment") else ""
            raise UpgradeError(f"{error} (log: {self.space.log}{again})") from None

    def _upgraded(self, environment: Environment | None, old: Environment | None) -> Report:
        request = self.request
        files = self.fixer.files()
        command, verified = self._tests(files)
        self._check_command(command, environment, old)
        if environment is None:
            self._say(f"creating the environment for torch {show_version(request.to)}")
            tested = "pytest" in command
            environment = made(*(self.space, files, request.to, request.options, self.clock), tested=tested)
            self._check_command(command, environment)
        self._say(f"torch {environment.torch}, Python {environment.python}")
        before_old = None
        if old is not None:
            before_old, command, compared = self._run_before(command, old)
            verified += compared
        names = self.fixer.names if request.evidence else None
        self.suite = self._suite(command, environment, "target", names)
        self._say(f"running the tests of the unchanged project on torch {environment.torch}")
        before = self.suite.run(self.space.base)
        self._report_run(before)
        runs = self._works_before(command, before)
        self._restore()
        self._set_verified(runs)
        steps, after = self._stages(before)
        if not runs and not self._ran(after):
            self.space.go_to(steps[-1].commit if steps else self.space.base)
            failing = Places(self.space.tree, self.fixer.look(guessing=True).findings).failing(after)
            cause = next((f" ({each.cause})" for each in failing if each.code), "")
            raise UpgradeError(
                f"{self._no_test(command, after)}{cause}, also with all fixes, so none is committed"
            )
        self._set_verified(True)
        return self._report(environment, before, before_old, steps, after, verified)

    @staticmethod
    def _check_command(command: str | None, *environments: Environment | None) -> None:
        """Raise UpgradeError where environments cannot run the tests by a command."""
        if command is not None:
            words = words_of(command)
            for environment in environments:
                if environment is not None:
                    environment.check_pytest(words)

    def _set_verified(self, yes: bool) -> None:
        self.is_verified = yes
        if yes:
            self.space.start()

    def _works_before(self, command: str, before: TestRun) -> bool:
        """Whether the unchanged project has tests that work, by which fixes can be verified.

        Where it has none because of torch, or of what other tools may fix, fixes are tried nevertheless.
        Raises UpgradeError where it has none for another reason.
        """
        if any(result.outcome in (Outcome.PASSED, Outcome.EXPECTED) for result in before.results.values()):
            return True
        if before.bad:
            self.space.go_to(self.space.base)
            places = Places(self.space.tree, self.fixer.look(guessing=True).findings)
            if self.tools or any(each.about_torch for each in places.failing(before)):
                return False
        raise UpgradeError(f"{self._no_test(command, before)}, so no fix can be verified")

    def _ran(self, run: TestRun) -> bool:
        """Whether a test ran to its end: one that fails did, but not an import or a command that fails."""
        alone = {Outcome.PASSED, Outcome.EXPECTED}
        ran = alone if self.imports else alone | {Outcome.FAILED}
        return any(each.outcome in (alone if name == COMMAND else ran) for name, each in run.results.items())

    def _no_test(self, command: str, run: TestRun) -> str:
        """Why no test of a run says anything, in a sentence that may go on."""
        if not run.results:
            why = run.trouble or "it printed nothing"
            return f"`{command}` runs no tests ({why})"
        if not run.bad:
            return f"`{command}` skips all tests"
        name = run.bad[0]
        result = run.results[name]
        own = [frame for frame in result.frames if not Path(frame.path).is_absolute()]
        said = " ".join(result.message.split())
        if own:
            said = f"{own[-1].path}:{own[-1].line}: {said}"
        if name == COMMAND:
            return f"`{command}` fails: {said}"
        what = "no module can be imported" if self.imports else f"no test of `{command}` passes"
        return f"{what}: {name}: {said}" + (f" (and {len(run.bad) - 1} more)" if len(run.bad) > 1 else "")

    def _fixer(
        self,
        *,
        unsafe: bool,
        guessed: Mapping[str, Collection[str]] | None = None,
        only: tuple[Collection[str], Collection[str]] | None = None,
    ) -> Fixer:
        return Fixer(
            *(self.space, self.request.to, self.console, self.clock),
            unsafe=unsafe,
            jobs=self.request.jobs,
            tools=self.tools,
            guessed=guessed,
            only=only,
        )

    # ---- tests -------------------------------------------------------------------------------------------

    def _tests(self, files: Sequence[Path]) -> tuple[str, str]:
        """The command that tests, and what it is, in words."""
        if self.request.test is not None:
            return self.request.test, f"`{self.request.test}`"
        if smoke.has_tests(files):
            if self.request.call_functions:
                self.space.notes.append("no function was called: the project has tests")
            return PYTEST, f"`{PYTEST}`"
        self._say("there are no tests: importing the modules and running the scripts with --help instead")
        self.imports, left_out = smoke.items(self.space, files)
        verified = (
            "no tests were found: only verified that modules can be imported, and that scripts run "
            "with --help"
        )
        if left_out:
            verified += f" ({plural(left_out, 'file')} skipped: importing would start real work)"
        if self.request.call_functions:
            self.functions = smoke.calls(self.space.project, self.imports, self.request.path.resolve())
        return smoke.command(self.space, self.imports), verified

    def _run_before(self, command: str, old: Environment) -> tuple[TestRun, str, str]:
        """The tests in the old environment, the command for the new one, and what it compares, in words."""
        self._say(f"running the tests of the unchanged project on torch {old.torch}")
        results = self.space.directory / "results.jsonl"
        if self.functions:
            self._say(f"  and calling {plural(len(self.functions), 'function')} on made inputs")
            command = smoke.command(self.space, [*self.imports, *self.functions], results)
        run = self._suite(command, old, "old").run(self.space.base)
        self._report_run(run)
        if not self.functions:
            return run, command, ""
        compared = smoke.compared(self.functions, results, old.torch)
        left = {each[1] for each in self.functions} - {each[1] for each in compared}
        if left:
            listed = ", ".join(sorted(left))
            self.space.notes.append(
                f"not compared, because they give no result on torch {old.torch}: {listed}"
            )
        number = plural(len(compared), "function")
        said = f"; compared the results of {number} on made inputs with those on torch {old.torch}"
        return run, smoke.command(self.space, [*self.imports, *compared]), said

    def _suite(
        self, command: str, environment: Environment, name: str, names: frozenset[str] | None = None
    ) -> Suite:
        limit = self.request.test_timeout
        return Suite(*(command, self.space, environment, self.clock), limit=limit, name=name, names=names)

    def _report_run(self, run: TestRun) -> None:
        kept = f"; {plural(run.kept, 'test')} not run again: no fix changes what they use" if run.kept else ""
        trouble = f"; {run.trouble}" if run.trouble else ""
        self._say(f"  {counts(run)} in {run.seconds:.0f} s{kept}{trouble}")

    # ---- fixes, and what is taken back ---------------------------------------------------------------------

    def _stages(self, before: TestRun) -> tuple[list[Applied], TestRun]:
        """Make the fixes, and those that only the tests show that get further since then."""
        fixers = [self.fixer] * _STAGES
        if self.request.unsafe and self.request.evidence and before.count(Outcome.ERROR):
            # What cannot be imported was not recorded: first what needs no recording.
            fixers.insert(0, self._fixer(unsafe=False))
        start, made = self.space.base, []
        for fixer, following in zip(fixers, [*fixers[1:], None], strict=True):
            more, after = self._verified(fixer, before, start)
            made += more
            final = more[-1].commit if more else start
            further = bool(more) and self.request.evidence and _moved(before, after)
            if following is None or (following is fixer and not further):
                break
            if more:
                self._keep_excluded(start, final)
            start, before = final, after
        if self.request.unsafe:
            made, after = self._guessed(made, after, start)
            made, after = self._old_defaults(made, after)
        for _ in range(_STAGES if self.request.evidence else 0):
            more, then = self._again(made, after)
            if not more:
                break
            made, after = [*made, *more], then
        return made, after

    def _again(self, made: list[Applied], after: TestRun) -> tuple[list[Applied], TestRun]:
        """Make fixes anew that depend on what is recorded, in the files where tests fail at what they wrote.

        They stay if a test passes that did not, and none fails that did not.
        """
        found = undone(self.space, made, after, self.fixer.decided_by_runs)
        if found is None:
            return [], after
        commit, step, paths = found
        self._say(f"recording the tests without the fixes that they fail at: {', '.join(step.group.codes)}")
        self.suite.run(commit)
        fixer = self._fixer(unsafe=self.request.unsafe, only=(step.group.codes, paths))
        final = made[-1].commit
        more = squashed(self.space, final, fixer.make(commit, {}), step)
        return ([], after) if more is None else self._judged(more, after, final)

    def _old_defaults(self, made: list[Applied], after: TestRun) -> tuple[list[Applied], TestRun]:
        """Try the old default where fixes keep the new one, and tests get other results than they expect."""
        for step in [step for step in made if not is_chosen_again(step.group)]:
            final = made[-1].commit
            code = self.fixer.old_default(step.group)
            some = [
                each.tests[0]
                for each in Places(self.space.tree, {}).failing(after)
                if is_other_result(each.message)
            ]
            known = without(self.space, final, step, step.paths) if code and some else None
            if code is None or known is None:
                continue
            self._say(f"trying the old default that some tests may expect: {code}")
            fixer = self._fixer(unsafe=True, guessed={code: known[1]}, only=({code}, known[1]))
            more = squashed(self.space, final, fixer.make(known[0], {}), step)
            if more is not None and self.suite.run(more.commit, some[:_SAMPLE]).passed:
                chosen, after = self._judged(more, after, final)
                made = [*made, *chosen]
            else:
                self._say("  reverted: no additional test passes")
        return made, after

    def _judged(self, more: Applied, after: TestRun, final: str) -> tuple[list[Applied], TestRun]:
        """Other fixes, if a test passes with them that did not, and none fails that did not; the tests."""
        self._say("running the tests with the other fixes")
        then = self.suite.run(more.commit, since=(final, after))
        self._report_run(then)
        if (
            self._mended(after, then, final, more.commit)
            and not self._lost(after, then, final, more.commit)[0]
        ):
            return [more], then
        self._say("  reverted: no additional test passes, or another test fails")
        return [], after

    def _keep_excluded(self, start: str, final: str) -> None:
        """What was taken back of the fixes on one commit is not made on the next either."""
        kept = {key: each.after() for key, each in self.exclusions[start].items()}
        self.exclusions.setdefault(final, kept)

    def _guessed(self, made: list[Applied], after: TestRun, start: str) -> tuple[list[Applied], TestRun]:
        """Try the fixes of rules that only guess, in files where a failing test leads to what they find.

        They stay if a test passes that did not. start: the commit on which the last fixes were made.
        """
        tried: set[tuple[str, str]] = set()
        for _ in range(_STAGES):
            final = made[-1].commit if made else self.space.base
            guessed = self._guesses_at(after, final) - tried
            if not guessed:
                break
            tried |= guessed
            codes = sorted({code for code, _ in guessed})
            self._say(f"trying rules that may explain the failures: {', '.join(codes)}")
            made, after, start = self._tried(self._guessing(guessed), made, after, start)
        return self._guessed_beside(made, after, start, tried)

    def _guessed_beside(
        self, made: list[Applied], after: TestRun, start: str, tried: set[tuple[str, str]]
    ) -> tuple[list[Applied], TestRun]:
        """The same of what they find elsewhere in these files, rule by rule, first with a few tests."""
        final = made[-1].commit if made else self.space.base
        guessed = self._guesses_at(after, final, whole_files=True) - tried
        for code in sorted({code for code, _ in guessed}):
            final = made[-1].commit if made else self.space.base
            fixer = self._guessing({each for each in guessed if each[0] == code})
            self._say(f"trying what may be the cause elsewhere in the files of failures: {code}")
            steps = fixer.make(final, {})
            failing = Places(self.space.tree, {}).failing(after)
            some = [each.tests[0] for each in failing][:_SAMPLE]
            then = self.suite.run(steps[-1].commit, some) if steps and some else None
            if then is not None and then.passed:
                made, after, start = self._tried(fixer, made, after, start)
            else:
                self._say("  reverted: no additional test passes")
        return made, after

    def _guessing(self, guessed: set[tuple[str, str]]) -> Fixer:
        """What makes the fixes of some rules, each in some files."""
        codes = {code for code, _ in guessed}
        paths = {code: sorted(path for each, path in guessed if each == code) for code in sorted(codes)}
        return self._fixer(unsafe=True, guessed=paths)

    def _tried(
        self, fixer: Fixer, made: list[Applied], after: TestRun, start: str
    ) -> tuple[list[Applied], TestRun, str]:
        """What was made, with more fixes if they mend a test; the tests, and where the last fixes begin."""
        final = made[-1].commit if made else self.space.base
        self._keep_excluded(start, final)
        more, then = self._verified(fixer, after, final)
        if more and self._mended(after, then, final, more[-1].commit):
            return made + more, then, final
        if more:
            self._say("  reverted: no additional test passes")
            self.in_vain |= {(code, path) for code, paths in fixer.guessed.items() for path in paths}
        return made, after, start

    def _guesses_at(self, run: TestRun, commit: str, *, whole_files: bool = False) -> set[tuple[str, str]]:
        """The rules that only guess and have a fix where failing tests lead to: codes and files.

        whole_files: anywhere in the files that they lead to.
        """
        found: set[tuple[str, str]] = set()
        if run.bad:
            self.space.go_to(commit)
            if whole_files:
                self.space.restore_evidence(commit)
            places = Places(self.space.tree, self.fixer.look(guessing=True).findings)
            for name in run.bad:
                frames = run.results[name].frames
                if whole_files:
                    led = places.in_files(frames)
                else:
                    near = None
                    at = places.on_way(frames) or (
                        (near := places.near(frames)) and (near.frame, near.finding)
                    )
                    led = [(at[0].path, at[1])] if at else []
                for path, finding in led:
                    if finding.code in self.fixer.guesses and finding.fix is not None:
                        found.add((finding.code, path))
        return found

    def _verified(self, fixer: Fixer, before: TestRun, start: str) -> tuple[list[Applied], TestRun]:
        """Make all groups on a commit, and take back what breaks a test, until nothing does."""
        exclusions = self.exclusions.setdefault(start, {})
        first = to_builtins(exclusions)
        taken_before = list(self.taken_back)
        steps: list[Applied] = []
        for number in range(_ROUNDS + 1):
            if number == _ROUNDS:  # never seen: each round leaves out more
                for step in steps:
                    exclusions.setdefault(step.group.key, Exclusion()).whole = True
            self._say("applying fixes" if not number else "applying fixes again, without the reverted ones")
            steps = fixer.make(start, exclusions)
            if not number:
                fixes = sum(step.fixes for step in steps)
                self._say(f"  {plural(fixes, 'fix', 'es')} in {plural(len(steps), 'commit')}")
            if not steps:
                return steps, before
            final = steps[-1].commit
            self._say("running the tests with all fixes")
            after = self.suite.run(final, since=(start, before))
            self._report_run(after)
            self._mended(before, after, start, final)
            lost, whole = self._lost(before, after, start, final)
            mocked = {name for name in lost if expects_old_call(_message(after, name))}
            self.to_change |= mocked
            lost = [name for name in lost if name not in mocked]
            if not lost:
                if not self._wrongly_blamed(self.taken_back[len(taken_before) :]):
                    break
                # A fix was taken back for a test that turned out to fail without it, too.
                exclusions.clear()
                exclusions |= convert(first, Exclusions)
                self.taken_back[:] = taken_before
                self._remember()
                continue
            search = Search(self.space, self.suite, start, exclusions, whole=whole)
            self._say(
                f" {plural(len(lost), 'test')} that passed now failed: looking for the fix that breaks it"
            )
            while lost:
                taken = search.take_back(steps, lost)
                lost = [name for name in lost if name not in self.suite.unstable]
                if taken is None:
                    continue
                self.taken_back.append(taken)
                self._remember()
                self._say(f"  reverted: {taken.group.title}" + _places(taken))
                lost = [name for name in lost if name not in taken.tests]
                if taken.whole:
                    break
        return steps, after

    def _mended(self, before: TestRun, after: TestRun, start: str, final: str) -> list[str]:
        """The tests that fixes mended. One that passes when it is run again before them was not.

        What such a test gave last is taken for what it gives. One that failed at a line that the fixes
        changed is not run again.
        """
        found = mended(before, after)
        changed = self._changed(start, final)
        failed = [
            name
            for name in found
            if name in before.results
            and changed.isdisjoint((frame.path, frame.line) for frame in before.results[name].frames)
        ]
        if failed:
            again = self.suite.run(start, failed)
            for name in set(failed) - set(not_passed(again, failed)):
                self.suite.unstable.add(name)
                before.results[name] = again.results[name]
        return [name for name in found if name not in self.suite.unstable]

    def _changed(self, start: str, final: str) -> set[tuple[str, int]]:
        """The paths and lines of a commit that another one replaced."""
        git = self.space.git
        paths = git.run("diff", "--name-only", "-z", "--no-renames", "--diff-filter=M", start, final)
        return {
            (path, hunk.start + number)
            for path in filter(None, paths.split("\0"))
            for hunk in hunks_of(
                path, git.run_bytes("show", f"{start}:{path}"), git.run_bytes("show", f"{final}:{path}")
            )
            for number in range(1, len(hunk.old) + 1)
        }

    def _lost(self, before: TestRun, after: TestRun, start: str, final: str) -> tuple[list[str], bool]:
        """The tests that fixes surely broke: they pass again before these, and fail again with them.

        Also whether that is only so if all tests are run. The others are unstable.
        """
        lost = [name for name in broken(before, after) if name not in self.suite.unstable]
        if not lost:
            return [], False
        broke = not_passed(self.suite.run(start, lost), lost)  # alone, even before the fixes
        again = self.suite.run(final, lost)
        for name in set(lost) - set(not_passed(again, lost)):
            self.suite.unstable.add(name)
            after.results[name] = again.results[name]
        lost = [name for name in lost if name not in self.suite.unstable]
        sure = [name for name in lost if name not in broke]
        if sure or not lost:
            return sure, False
        broke = not_passed(self.suite.run(start, attempt=1), lost)
        broken_again = not_passed(self.suite.run(final, attempt=1), lost)
        sure = [name for name in broken_again if name not in broke and name not in self.suite.unstable]
        self.suite.unstable |= set(lost) - set(sure)
        return sure, True

    def _wrongly_blamed(self, taken: Iterable[TakenBack]) -> bool:
        """Whether something was taken back only for tests that are unstable."""
        return any(self.suite.unstable.issuperset(each.tests) for each in taken)

    def _remember(self) -> None:
        self.space.note("taken_back", to_builtins(_Remembered(self.exclusions, self.taken_back)))

    def _restore(self) -> None:
        """What an earlier run took back."""
        remembered = self.space.recalled("taken_back", _Remembered)
        if remembered is not None and all(taken.tests for taken in remembered.taken_back):
            self.exclusions |= remembered.exclusions
            self.taken_back += remembered.taken_back

    # ---- the end -----------------------------------------------------------------------------------------

    def _report(
        self,
        environment: Environment,
        before: TestRun,
        before_old: TestRun | None,
        steps: list[Applied],
        after: TestRun,
        verified: str,
    ) -> Report:
        final = steps[-1].commit if steps else self.space.base
        one = max(before.cpu, after.cpu)
        cost = round(self.suite.cpu / one, 1) if one else None
        if cost is not None:
            self._say(f"all runs of the tests took {cost} times the CPU time of one run")
        self.space.finish(final)
        looked = self.fixer.look(guessing=True)
        places = Places(
            self.space.tree,
            looked.findings,
            lambda frame: self._written_by(frame, steps),
            self._kept_in(steps),
        )
        for taken in self.taken_back:
            taken.advice = self.fixer.advice(taken.group)
        notes = [*self.space.notes, *environment.notes]
        notes += [
            f"{problem.path.relative_to(self.space.tree)}: {problem.reason}" for problem in looked.problems
        ]
        notes += [
            f"{path}:{row}: `{finding.symbol}` was not raised: {sentence(finding.blocked_by)}"
            for path, row, finding in places.unfixed(PINS)
            if finding.blocked_by
        ]
        notes += self._warned(after, final, places)
        stable = {name: each for name, each in after.results.items() if name not in self.suite.unstable}
        counted = replace(after, results=stable)
        failing = [
            replace(each, cause=f"{each.cause}; its fix was tried, and mended no test")
            if any(code in each.cause and each.leads_to(path) for code, path in self.in_vain)
            else each
            for each in places.failing(counted, before, self.to_change)
        ]
        return Report(
            project=self.request.path.resolve().name,
            target=self.request.to,
            python=environment.python,
            torch=environment.torch,
            branch=self.space.branch,
            tree=str(self.space.tree),
            log=str(self.space.log),
            before=before,
            after=after,
            verified=verified,
            before_old=before_old,
            applied=steps,
            taken_back=self.taken_back,
            failing=failing,
            by_hand=places.by_hand(counted, self.fixer.guesses),
            unstable=sorted(self.suite.unstable),
            to_change=sorted(self.to_change.intersection(after.bad)),
            left_out=environment.left_out,
            notes=notes,
            runs_from=self.fixer.runs_from(),
            diffs={step.commit: self.space.git.run("show", "--format=", step.commit) for step in steps},
            seconds=self.clock.elapsed,
            cost=cost,
        )

    def _warned(self, after: TestRun, final: str, places: Places) -> Iterator[str]:
        """Warnings of torch during the tests that no finding explains."""
        told: dict[tuple[str, int], Warned] = {}
        data = self.space.evidence_of(final) or self.space.evidence_of(self.space.base)
        for seen in warnings_in(data, self.space.tree):  # also of what torch's own lines warned
            told[seen.path, seen.line] = seen
        for each in after.warnings:
            if not Path(each.path).is_absolute():
                text = " ".join(each.message.partition("(Triggered internally")[0].split())
                told[each.path, each.line] = Warned(
                    each.path, each.line, f"{each.category}: {text[:_MOST_TEXT]}"
                )
        return warned_lines(
            each
            for each in told.values()
            if is_of_change(each.text) and not places.names(each.path, each.line)
        )

    def _kept_in(self, steps: Sequence[Applied]) -> Callable[[str], str | None]:
        """What answers, for a test, which fixes in the files that it uses keep what the target does."""
        chosen = {step.group.codes for step in steps if is_chosen_again(step.group)}
        kept = [
            (step, said)
            for step in steps
            if step.group.codes not in chosen and (said := self.fixer.kept_by(step.group)) is not None
        ]
        place = self.space.project.relative_to(self.space.tree)
        listed = self.space.git.run("ls-files", "-z").split("\0") if kept else []
        reach = Reach(self.space.tree, listed)

        def kept_in(test: str) -> str | None:
            used = set(reach.used((place / test.partition("::")[0]).as_posix())) if kept else set()
            for step, said in kept:
                paths = [path for path in step.paths if path in used]
                if paths:
                    return f"{step.group.codes[0]} in {', '.join(paths[:3])}: {said}"
            return None

        return kept_in

    def _written_by(self, frame: Frame, steps: Sequence[Applied]) -> FixGroup | None:
        """The group whose commit wrote a line."""
        lines = f"{frame.line},{frame.line}"
        said = self.space.git.says("blame", "--porcelain", "-L", lines, "--", frame.path)
        commit = (said or "").partition(" ")[0]
        return next((step.group for step in steps if step.commit == commit), None)

    def _say(self, text: str) -> None:
        left = self.clock.left
        time = f"[{_minutes(self.clock.elapsed)}" + ("]" if left is None else f", {_minutes(left)} left]")
        self.console.note(f"{self.console.error_style.dim(time)} {text}")


def _message(run: TestRun, name: str) -> str:
    return run.results[name].message if name in run.results else ""


def _moved(before: TestRun, after: TestRun) -> bool:
    """Whether a test ends in another way, or at another place."""
    return any(before.results.get(name) != result for name, result in after.results.items())


def _minutes(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def counts(run: TestRun) -> str:
    """ "118 passed, 3 failed"."""
    found = [_counted(run.count(outcome), outcome) for outcome in Outcome if run.count(outcome)]
    return ", ".join(found) or "no test was run"


def _counted(number: int, outcome: Outcome) -> str:
    return plural(number, "error") if outcome is Outcome.ERROR else f"{number} {outcome.value}"


def _places(taken: TakenBack) -> str:
    if taken.whole:
        return " (all fixes)"
    return ": " + ", ".join(f"{path}:{line}" if line else path for path, line in taken.places[:5])

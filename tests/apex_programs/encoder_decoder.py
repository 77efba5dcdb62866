import argparse

import torch
from apex.amp import initialize, master_params, scale_loss

from toy import pairs


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--level", default="O1")
    args = parser.parse_args()
    encoder, decoder = torch.nn.Linear(6, 8), torch.nn.Linear(8, 3)
    opt1 = torch.optim.Adam(encoder.parameters(), lr=0.02)
    opt2 = torch.optim.Adam(decoder.parameters(), lr=0.02)
    amp_options = dict(opt_level=args.level, verbosity=0)
    [encoder, decoder], [opt1, opt2] = initialize([encoder, decoder], [opt1, opt2], **amp_options)
    for x, y in pairs(8):
        opt1.zero_grad()
        opt2.zero_grad()
        losses = []
        out = decoder(torch.tanh(encoder(x)))
        for part, wanted in zip(out.chunk(2), y.chunk(2)):
            losses.append(torch.nn.functional.mse_loss(part, wanted))
        loss = sum(losses) / len(losses)
        with scale_loss(loss, [opt1, opt2]) as sl:
            sl.backward()
        torch.nn.utils.clip_grad_norm_(encoder.parameters(), 0.1)
        torch.nn.utils.clip_grad_norm_(master_params(opt2), 0.1)
        opt1.step()
        opt2.step()
        print(loss.item())


main()

from unittest import mock

import numpy as np
import program
import torch
from support import collect, numbers, with_gradients

WINDOW = torch.hann_window(24)


def griffin_lim():
    # Angles of which no release may draw others.
    with mock.patch.object(torch, "rand", lambda *shape: numbers(*shape).abs() + 0.1):
        return program.griffin_lim(numbers(2, 17, 9).abs(), 32, 8, 3)


results, raised = collect(
    stft=lambda: with_gradients(lambda x: program.stft(x, 32, 8, 24, WINDOW), numbers(2, 100)),
    griffin_lim=griffin_lim,
    complex_stft=lambda: torch.view_as_real(program.complex_stft(numbers(2, 600))),
    fft_conv=lambda: with_gradients(program.fft_conv, numbers(2, 9), numbers(2, 4, seed=1)),
    centred_fft2=lambda: with_gradients(program.centred_fft2, numbers(2, 4, 6, 2)),
    convergence=lambda: with_gradients(program.SpectralConvergence(), numbers(2, 5), numbers(2, 5, seed=1)),
    dct=lambda: with_gradients(program.dct, numbers(2, 8)),
    reference=lambda: [abs(number) for number in program.reference(np.arange(5.0))[0].tolist()],
)

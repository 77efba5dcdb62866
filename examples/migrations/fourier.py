"""Correlation of images and a spectrogram, with the real layout of complex numbers."""

import torch


def correlate(image, kernel):
    a = torch.rfft(image, 2, onesided=False)
    b = torch.rfft(kernel, 2, onesided=False)
    real = a[..., 0] * b[..., 0] + a[..., 1] * b[..., 1]
    imaginary = a[..., 1] * b[..., 0] - a[..., 0] * b[..., 1]
    return torch.irfft(torch.stack((real, imaginary), -1), 2, onesided=False)


def magnitude(audio, window):
    spectrum = torch.stft(audio, 512, 128, window=window)
    return torch.sqrt(spectrum[..., 0] ** 2 + spectrum[..., 1] ** 2)

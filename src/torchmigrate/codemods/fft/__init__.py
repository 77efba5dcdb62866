"""The old Fourier transforms become torch.fft."""

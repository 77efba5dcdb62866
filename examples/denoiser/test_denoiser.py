import torch

from denoiser import Denoiser, components, loudness, resume, sensitivity, train


def test_loudness():
    assert loudness(torch.ones(128)).shape == (33, 9)


def test_components():
    assert components(torch.diag(torch.arange(1.0, 5.0))).abs().sum() == 2


def test_sensitivity():
    assert sensitivity(Denoiser(), torch.ones(3, 33)).shape == (3, 33)


def test_training():
    assert train(Denoiser(), [(torch.ones(2, 33), torch.ones(2, 33))], "cpu") > 0


def test_resume(tmp_path):
    torch.save(Denoiser().state_dict(), tmp_path / "model.pt")
    assert resume(Denoiser(), tmp_path / "model.pt")

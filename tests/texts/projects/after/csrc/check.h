#pragma once
#define MY_CHECK(x) TORCH_CHECK(x)

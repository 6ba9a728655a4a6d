module inference-router/launcher

go 1.22

require github.com/klauspost/compress v1.18.0

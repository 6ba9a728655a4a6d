package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
)

// maxLoaderPath is the size of the last bytes of Node, which name the dynamic loader (tools/build/elf.ts).
const maxLoaderPath = 4096

// unpack writes the archive into a new folder, which is going to have another name.
func unpack(to, final string) error {
	compressed, err := zstd.NewReader(bytes.NewReader(archive), zstd.WithDecoderMaxWindow(1<<31))
	if err != nil {
		return err
	}
	defer compressed.Close()
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	root, err := filepath.Abs(to)
	if err != nil {
		return err
	}
	entries := tar.NewReader(compressed)
	buffer := make([]byte, 1<<20)
	for {
		entry, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return nameLoader(to, final)
		}
		if err != nil {
			return err
		}
		if !filepath.IsLocal(entry.Name) {
			return fmt.Errorf("the archive has a path outside of it: %s", entry.Name)
		}
		if err := write(filepath.Join(root, filepath.FromSlash(entry.Name)), entry, entries, buffer); err != nil {
			return err
		}
	}
}

func write(path string, entry *tar.Header, contents io.Reader, buffer []byte) error {
	if entry.Typeflag == tar.TypeDir {
		return os.MkdirAll(path, 0o700)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_EXCL, entry.FileInfo().Mode().Perm()&^0o077)
	if err != nil {
		return err
	}
	// Few large writes: Node alone has more than 100 MB.
	if _, err := io.CopyBuffer(struct{ io.Writer }{file}, contents, buffer); err != nil {
		file.Close()
		return err
	}
	return file.Close()
}

// nameLoader writes the path of the dynamic loader into Node, where there is one beside it.
func nameLoader(folder, final string) error {
	loaders, err := filepath.Glob(filepath.Join(folder, "node", "lib", "ld-linux-*"))
	if err != nil || len(loaders) == 0 {
		return err
	}
	path := append([]byte(filepath.Join(final, "node", "lib", filepath.Base(loaders[0]))), 0)
	if len(path) > maxLoaderPath {
		return fmt.Errorf("the path is too long: %s", final)
	}
	node, err := os.OpenFile(filepath.Join(folder, "node", nodeName), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer node.Close()
	if _, err := node.Seek(-maxLoaderPath, io.SeekEnd); err != nil {
		return err
	}
	_, err = node.Write(path)
	return err
}

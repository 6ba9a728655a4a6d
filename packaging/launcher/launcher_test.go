package main

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// archiveOf returns a compressed archive; paths that end with a slash are folders.
func archiveOf(t *testing.T, files ...string) []byte {
	t.Helper()
	var made bytes.Buffer
	compressed, err := zstd.NewWriter(&made)
	if err != nil {
		t.Fatal(err)
	}
	entries := tar.NewWriter(compressed)
	for _, path := range files {
		header := &tar.Header{Name: path, Mode: 0o755, Typeflag: tar.TypeReg, Size: int64(len(contentsOf(path)))}
		if strings.HasSuffix(path, "/") {
			header = &tar.Header{Name: path, Mode: 0o755, Typeflag: tar.TypeDir}
		}
		if err := entries.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if header.Typeflag == tar.TypeReg {
			entries.Write(contentsOf(path))
		}
	}
	entries.Close()
	compressed.Close()
	return made.Bytes()
}

func contentsOf(path string) []byte {
	if path == "node/"+nodeName {
		return append([]byte("the program"), make([]byte, maxLoaderPath)...)
	}
	return []byte(path)
}

func carry(t *testing.T, id string, files ...string) {
	t.Helper()
	build, archive = id, archiveOf(t, files...)
	t.Cleanup(func() { build, archive = "", nil })
}

var usual = []string{"node/", "node/" + nodeName, "program/", "program/src/", "program/src/start.js"}

func unpacked(t *testing.T, chosen string) string {
	t.Helper()
	folder, err := unpackedFolder(chosen)
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

func TestABuildIsUnpackedOnce(t *testing.T) {
	carry(t, "one", usual...)
	parent := t.TempDir()
	folder := unpacked(t, parent)
	if folder != filepath.Join(parent, "app-one") {
		t.Fatalf("unpacked into %s", folder)
	}
	file := filepath.Join(folder, "program", "src", "start.js")
	if text, err := os.ReadFile(file); err != nil || string(text) != "program/src/start.js" {
		t.Fatalf("%s: %q %v", file, text, err)
	}
	os.WriteFile(file, []byte("as it was left"), 0o600)
	unpacked(t, parent)
	if text, _ := os.ReadFile(file); string(text) != "as it was left" {
		t.Fatalf("it was unpacked again: %q", text)
	}
}

func TestLaunchersThatStartAtOnceUnpackOneWholeFolder(t *testing.T) {
	carry(t, "one", usual...)
	parent := t.TempDir()
	var all sync.WaitGroup
	for range 20 {
		all.Add(1)
		go func() {
			defer all.Done()
			folder, err := unpackedFolder(parent)
			if err != nil || !exists(filepath.Join(folder, "program", "src", "start.js")) {
				t.Errorf("%s: %v", folder, err)
			}
		}()
	}
	all.Wait()
	if left, _ := filepath.Glob(filepath.Join(parent, "*"+draftEnding)); len(left) > 0 {
		t.Errorf("drafts are left: %v", left)
	}
}

func TestBuildsThatNobodyUsesAreDeleted(t *testing.T) {
	parent := t.TempDir()
	old := filepath.Join(parent, "app-old")
	draft := filepath.Join(parent, "app-older.17"+draftEnding)
	other := filepath.Join(parent, "files")
	for _, folder := range []string{old, draft, other} {
		os.MkdirAll(folder, 0o700)
	}
	carry(t, "new", usual...)
	unpacked(t, parent)
	if exists(old) || exists(draft) {
		t.Error("the old build is left")
	}
	if !exists(other) {
		t.Error("a folder that is no build was deleted")
	}
}

func TestABuildInUseIsKept(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows keeps folders of running programs by itself")
	}
	parent := t.TempDir()
	carry(t, "old", usual...)
	old := unpacked(t, parent) // Its lock is held until this process ends.
	carry(t, "new", usual...)
	unpacked(t, parent)
	if !exists(filepath.Join(old, "program", "src", "start.js")) {
		t.Error("a build that a process uses was deleted")
	}
}

func TestAnArchiveThatBreaksOffLeavesNoFolder(t *testing.T) {
	carry(t, "one", usual...)
	archive = archive[:len(archive)/2]
	parent := t.TempDir()
	if folder, err := unpackedFolder(parent); err == nil {
		t.Fatalf("unpacked into %s", folder)
	}
	if exists(filepath.Join(parent, "app-one")) {
		t.Error("a part of it is left")
	}
}

func TestAnArchiveWritesNothingOutsideItsFolder(t *testing.T) {
	carry(t, "one", "../outside")
	parent := t.TempDir()
	if _, err := unpackedFolder(filepath.Join(parent, "cache")); err == nil || !strings.Contains(err.Error(), "outside") {
		t.Fatalf("error: %v", err)
	}
	if exists(filepath.Join(parent, "cache", "outside")) || exists(filepath.Join(parent, "outside")) {
		t.Error("it was written")
	}
}

func TestAFolderThatOthersCanWriteToIsNotRun(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has other access rights")
	}
	carry(t, "one", usual...)
	parent := t.TempDir()
	os.Chmod(unpacked(t, parent), 0o777)
	if _, err := unpackedFolder(parent); err == nil || !strings.Contains(err.Error(), "others can write") {
		t.Fatalf("error: %v", err)
	}
}

func TestNodeNamesTheLoaderBesideIt(t *testing.T) {
	carry(t, "one", append(usual, "node/lib/", "node/lib/ld-linux-x86-64.so.2")...)
	folder := unpacked(t, t.TempDir())
	node, _ := os.ReadFile(filepath.Join(folder, "node", nodeName))
	path, _, _ := bytes.Cut(node[len(node)-maxLoaderPath:], []byte{0})
	if want := filepath.Join(folder, "node", "lib", "ld-linux-x86-64.so.2"); string(path) != want {
		t.Fatalf("the loader is %q, not %q", path, want)
	}
	if !bytes.HasPrefix(node, []byte("the program")) {
		t.Error("the program has changed")
	}
}

func TestTheFolderOptionIsTheLaunchers(t *testing.T) {
	for _, given := range [][]string{{"--unpack-to", "/x", "serve", "--unpack-to"}, {"--unpack-to=/x", "serve", "--unpack-to"}} {
		folder, rest, err := unpackTo(given)
		if folder != "/x" || !slices.Equal(rest, []string{"serve", "--unpack-to"}) || err != nil {
			t.Errorf("%v: %s %v %v", given, folder, rest, err)
		}
	}
	if _, rest, _ := unpackTo([]string{"serve", "--unpack-to", "/x"}); len(rest) != 3 {
		t.Errorf("an option of the program was taken: %v", rest)
	}
	for _, given := range [][]string{{"--unpack-to"}, {"--unpack-to="}} {
		if _, _, err := unpackTo(given); err == nil {
			t.Errorf("%v was taken", given)
		}
	}
}

func TestTheProgramKeepsTheVariablesThatAreSet(t *testing.T) {
	made := environment("/build", []string{"INFERENCE_ROUTER_CACHE=off", "MALLOC_ARENA_MAX=4", "EMPTY=", "TWO=a=b"})
	for _, variable := range []string{"INFERENCE_ROUTER_CACHE=off", "MALLOC_ARENA_MAX=4", "EMPTY=", "TWO=a=b"} {
		if !slices.Contains(made, variable) {
			t.Errorf("%s is missing: %v", variable, made)
		}
	}
	made = environment("/build", []string{"INFERENCE_ROUTER_CACHE=/elsewhere"})
	if want := "INFERENCE_ROUTER_CACHE=" + filepath.Join("/build", "cache"); !slices.Contains(made, want) || slices.Contains(made, "INFERENCE_ROUTER_CACHE=/elsewhere") {
		t.Errorf("%s is missing: %v", want, made)
	}
}

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// draftEnding ends the names of folders that are not whole.
const draftEnding = ".draft"

// unpackedFolder returns the folder of this build in `chosen` or the user's cache, and unpacks it there if that has not been done.
func unpackedFolder(chosen string) (string, error) {
	parent, err := cacheFolder(chosen)
	if err != nil {
		return "", err
	}
	folder := filepath.Join(parent, "app-"+build)
	for {
		unlock, err := share(folder + ".lock")
		if err != nil && !exists(folder) {
			return "", fmt.Errorf("cannot unpack into %s: %w; choose another folder with --unpack-to", parent, reason(err))
		}
		if exists(folder) {
			// The lock is kept until the program ends: nobody deletes a folder that is in use.
			return folder, onlyOurs(folder)
		}
		unlock()
		if err := unpackOnce(folder); err != nil {
			return "", fmt.Errorf("cannot unpack into %s: %w; choose another folder with --unpack-to", parent, reason(err))
		}
		removeOthers(parent, filepath.Base(folder))
	}
}

// unpackOnce unpacks this build. Of launchers that start at once, one does it.
func unpackOnce(folder string) error {
	unlock, err := acquire(folder+".lock", true)
	if err != nil {
		return err
	}
	defer unlock()
	if exists(folder) {
		return nil
	}
	draft := fmt.Sprintf("%s.%d%s", folder, os.Getpid(), draftEnding)
	defer os.RemoveAll(draft)
	if err := unpack(draft, folder); err != nil {
		return err
	}
	if err := os.Rename(draft, folder); err != nil && !exists(folder) {
		return err
	}
	return nil
}

// removeOthers deletes the folders of other builds that no process uses, and what interrupted launchers left.
func removeOthers(parent, own string) {
	entries, _ := os.ReadDir(parent)
	for _, entry := range entries {
		name := entry.Name()
		if !entry.IsDir() || !strings.HasPrefix(name, "app-") || name == own {
			continue
		}
		lock := filepath.Join(parent, lockOf(name))
		if unlock, err := acquire(lock, false); err == nil {
			remove(filepath.Join(parent, name))
			if lockOf(name) != own+".lock" {
				os.Remove(lock)
			}
			unlock()
		}
	}
}

// remove deletes a folder. It is renamed first: one that is deleted in part must not look like one that can be used.
func remove(folder string) {
	if !strings.HasSuffix(folder, draftEnding) {
		if os.Rename(folder, folder+draftEnding) != nil {
			return
		}
		folder += draftEnding
	}
	os.RemoveAll(folder)
}

// lockOf returns the lock of a folder: drafts have that of the folder they become.
func lockOf(name string) string {
	build, _, _ := strings.Cut(strings.TrimPrefix(name, "app-"), ".")
	return "app-" + build + ".lock"
}

// cacheFolder returns the folder that builds are unpacked into: the first of the usual places that can be made.
func cacheFolder(chosen string) (string, error) {
	if named := os.Getenv("INFERENCE_ROUTER_CACHE"); chosen == "" && named != "off" {
		chosen = named
	}
	if chosen != "" {
		place, err := filepath.Abs(chosen)
		if err == nil {
			err = os.MkdirAll(place, 0o700)
		}
		return place, err
	}
	places := []string{}
	if caches, err := os.UserCacheDir(); err == nil {
		places = append(places, filepath.Join(caches, "inference-router"))
	}
	if temporary := os.TempDir(); exists(temporary) {
		places = append(places, filepath.Join(temporary, fmt.Sprintf("inference-router-%d", os.Getuid())))
	}
	if here, err := os.Getwd(); err == nil {
		places = append(places, filepath.Join(here, ".cache", "inference-router"))
	}
	failures := []error{}
	for _, place := range places {
		err := os.MkdirAll(place, 0o700)
		if err == nil {
			err = onlyOurs(place)
		}
		if err == nil {
			err = writable(place)
		}
		if err == nil {
			return place, nil
		}
		failures = append(failures, reason(err))
	}
	return "", fmt.Errorf("there is no folder to unpack into (%w): choose one with --unpack-to", errors.Join(failures...))
}

// writable checks whether a folder holds this build, or can take it.
func writable(place string) error {
	if exists(filepath.Join(place, "app-"+build)) {
		return nil
	}
	probe, err := os.CreateTemp(place, ".probe-")
	if err != nil {
		return err
	}
	probe.Close()
	return os.Remove(probe.Name())
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// reason shortens the errors of file operations to path and reason.
func reason(err error) error {
	var failed *os.PathError
	if errors.As(err, &failed) {
		return fmt.Errorf("%s: %w", failed.Path, failed.Err)
	}
	return err
}

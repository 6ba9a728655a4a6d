//go:build unix

package main

import (
	"fmt"
	"os"
	"syscall"
)

const nodeName = "node"

// start becomes the program: signals, exit code and process id are its own.
func start(command, environment []string) error {
	return fmt.Errorf("cannot start %s: %w", command[0], syscall.Exec(command[0], command, environment))
}

// share locks a file until this process, and the program it becomes, end; others can share it.
func share(path string) (unlock func(), err error) {
	file, err := open(path, syscall.LOCK_SH)
	if err != nil {
		return func() {}, err
	}
	return func() { syscall.Close(file) }, nil
}

// acquire locks a file for this process alone.
func acquire(path string, wait bool) (unlock func(), err error) {
	how := syscall.LOCK_EX
	if !wait {
		how |= syscall.LOCK_NB
	}
	file, err := open(path, how)
	if err != nil {
		return func() {}, err
	}
	return func() { syscall.Close(file) }, nil
}

// open locks a file that is still at its path then. Not through os.File, which would close it when the program starts.
func open(path string, how int) (int, error) {
	for {
		file, err := syscall.Open(path, syscall.O_CREAT|syscall.O_RDWR|syscall.O_NOFOLLOW, 0o600)
		if err != nil {
			return -1, &os.PathError{Op: "open", Path: path, Err: err}
		}
		err = syscall.Flock(file, how)
		if err != nil && how&syscall.LOCK_NB != 0 {
			syscall.Close(file)
			return -1, err
		}
		// A file system without locks: the folder's name is what makes it whole.
		var locked, there syscall.Stat_t
		if err != nil || syscall.Fstat(file, &locked) != nil {
			return file, nil
		}
		if syscall.Lstat(path, &there) == nil && locked.Ino == there.Ino && locked.Dev == there.Dev {
			return file, nil
		}
		syscall.Close(file)
	}
}

// onlyOurs checks that nobody else could have written what is going to run.
func onlyOurs(folder string) error {
	var found syscall.Stat_t
	if err := syscall.Lstat(folder, &found); err != nil {
		return &os.PathError{Op: "stat", Path: folder, Err: err}
	}
	isOwn := int(found.Uid) == os.Geteuid() || found.Uid == 0
	if found.Mode&syscall.S_IFMT != syscall.S_IFDIR || !isOwn || found.Mode&0o022 != 0 {
		return fmt.Errorf("others can write to %s: delete it, or choose another folder with --unpack-to", folder)
	}
	return nil
}

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
)

const nodeName = "node.exe"

// start runs the program and ends with its exit code. The console sends Ctrl+C to both; the program decides when to end.
func start(command, environment []string) error {
	program := exec.Command(command[0], command[1:]...)
	program.Env, program.Stdin, program.Stdout, program.Stderr = environment, os.Stdin, os.Stdout, os.Stderr
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	err := program.Run()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		return fmt.Errorf("cannot start %s: %w", command[0], err)
	}
	os.Exit(program.ProcessState.ExitCode())
	return nil
}

// share does nothing: Windows itself refuses to rename a folder whose programs run.
func share(string) (unlock func(), err error) { return func() {}, nil }

// acquire does nothing: of launchers that start at once, the first to rename its draft wins.
func acquire(string, bool) (unlock func(), err error) { return func() {}, nil }

// onlyOurs trusts the access rights of the user's own folders.
func onlyOurs(string) error { return nil }

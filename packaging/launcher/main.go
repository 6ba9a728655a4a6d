// Command launcher is the one file that people download: it carries Node and the program as a compressed archive, unpacks them once for
// each build into the user's cache, and starts the program from there.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// build identifies the contents of the archive; the build sets it.
var build string

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "inference-router:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	chosen, args, err := unpackTo(args)
	if err != nil {
		return err
	}
	folder, err := unpackedFolder(chosen)
	if err != nil {
		return err
	}
	if chosen != "" && len(args) == 0 {
		fmt.Println(folder)
		return nil
	}
	return start(command(folder, args), environment(folder, os.Environ()))
}

// unpackTo takes the launcher's own option from the arguments, which otherwise are the program's.
func unpackTo(args []string) (folder string, rest []string, err error) {
	const option = "--unpack-to"
	if len(args) == 0 || (args[0] != option && !strings.HasPrefix(args[0], option+"=")) {
		return "", args, nil
	}
	if folder, found := strings.CutPrefix(args[0], option+"="); found && folder != "" {
		return folder, args[1:], nil
	}
	if args[0] == option && len(args) > 1 {
		return args[1], args[2:], nil
	}
	return "", nil, fmt.Errorf("%s needs a folder", option)
}

// command returns the program with its arguments. The flags are those of src/runtime/restart.ts, which starts Node again without them.
func command(folder string, args []string) []string {
	node := filepath.Join(folder, "node", nodeName)
	helpers := min(4, max(1, runtime.GOMAXPROCS(0)-1))
	return append([]string{
		node,
		"--max-semi-space-size=64",
		"--no-memory-reducer",
		fmt.Sprintf("--v8-pool-size=%d", helpers),
		filepath.Join(folder, "program", "src", "start.js"),
	}, args...)
}

// environment returns the variables of the program: those given, and what src/runtime/restart.ts would add.
func environment(folder string, given []string) []string {
	set := map[string]string{}
	for _, variable := range given {
		name, value, _ := strings.Cut(variable, "=")
		set[name] = value
	}
	added := []string{}
	add := func(name, value string) { added = append(added, name+"="+value) }
	if set["MALLOC_ARENA_MAX"] == "" {
		add("MALLOC_ARENA_MAX", "2")
	}
	if set["INFERENCE_ROUTER_CACHE"] != "off" {
		add("INFERENCE_ROUTER_CACHE", filepath.Join(folder, "cache"))
	}
	if _, err := os.Readlink("/proc/self/exe"); err != nil && runtime.GOOS == "linux" {
		// Without /proc, the dynamic loader cannot find out where the libraries beside Node are.
		add("LD_ORIGIN_PATH", filepath.Join(folder, "node"))
	}
	replaced := map[string]bool{}
	for _, variable := range added {
		name, _, _ := strings.Cut(variable, "=")
		replaced[name] = true
	}
	for _, variable := range given {
		if name, _, _ := strings.Cut(variable, "="); !replaced[name] {
			added = append(added, variable)
		}
	}
	return added
}

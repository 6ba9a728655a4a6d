//go:build !archive

package main

// archive is empty in tests, which set it.
var archive []byte

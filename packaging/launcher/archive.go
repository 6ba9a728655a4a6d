//go:build archive

package main

import _ "embed"

// archive is Node, the program and its warmed caches.
//
//go:embed archive.tar.zst
var archive []byte

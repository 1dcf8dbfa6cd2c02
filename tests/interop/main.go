// Interop drives `csi-proxy.exe serve --simulate` with the published Go clients of CSI Proxy,
// which drivers use. It runs on Windows and under Wine; no CSI Proxy may serve beside it.
//
//	interop.exe methods|pipes csi-proxy.exe machine.toml
package main

import (
	"fmt"
	"os"
)

// parts are what can be run.
var parts = map[string]func(program, machine string) error{
	"methods": methods,
	"pipes":   pipes,
	"mkdir":   mkdir,
}

func main() {
	if len(os.Args) != 4 || parts[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: interop.exe methods|pipes csi-proxy.exe machine.toml")
		os.Exit(2)
	}
	if err := parts[os.Args[1]](os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "interop:", err)
		os.Exit(1)
	}
}

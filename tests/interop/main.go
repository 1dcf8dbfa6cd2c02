// Interop drives `csi-proxy.exe serve --simulate` with the published Go clients of CSI Proxy,
// which drivers use. It runs on Windows and under Wine; no CSI Proxy may serve beside it.
//
//	interop.exe methods|pipes|load|service csi-proxy.exe machine.toml
//	interop.exe bench csi-proxy.exe csi-proxy-1.x.exe
package main

import (
	"fmt"
	"os"
)

// parts are what can be run.
var parts = map[string]func(program, other string) error{
	"methods": methods,
	"pipes":   pipes,
	"load":    load,
	"service": service,
	"bench":   bench,
	"mkdir":   mkdir,
}

func main() {
	if len(os.Args) != 4 || parts[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: interop.exe methods|pipes|load|service csi-proxy.exe machine.toml\n"+
			"       interop.exe bench csi-proxy.exe csi-proxy-1.x.exe")
		os.Exit(2)
	}
	if err := parts[os.Args[1]](os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "interop:", err)
		os.Exit(1)
	}
}

package main

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Microsoft/go-winio"
	filesystemv1 "github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v1"
)

// bench measures both programs on the real file system of this machine, one after the other.
func bench(path, published string) error {
	for _, measured := range []struct{ name, path string }{
		{"this program", path},
		{"CSI Proxy 1.3.0", published},
	} {
		if err := measure(measured.name, measured.path); err != nil {
			return fmt.Errorf("%s: %w", measured.name, err)
		}
	}
	return nil
}

// measure starts a program without any flag and calls PathExists.
func measure(name, path string) error {
	const warm, alone, together, lanes = 500, 5000, 40000, 16
	file, err := os.Stat(path)
	if err != nil {
		return err
	}
	server := &program{command: exec.Command(path)}
	if err := server.command.Start(); err != nil {
		return err
	}
	defer server.kill()
	client, err := patient()
	if err != nil {
		return err
	}
	defer client.Close()
	// What it takes when it has answered once.
	if _, err := pathExists(client, kubelet); err != nil {
		return err
	}
	idle := server.memory()
	var single times
	for number := range warm + alone {
		begun := time.Now()
		if _, err := pathExists(client, kubelet); err != nil {
			return err
		}
		if number >= warm {
			single = append(single, time.Since(begun))
		}
	}
	begun := time.Now()
	if err := atOnce(client, together, lanes); err != nil {
		return err
	}
	rate := together / time.Since(begun).Seconds()
	fmt.Printf("%s: %.1f MiB on disk\n", name, float64(file.Size())/(1<<20))
	fmt.Printf("  one call at a time: %v\n", single)
	fmt.Printf("  %d at a time on one connection: %.0f calls/s\n", lanes, rate)
	fmt.Printf("  idle: %v\n  after %d calls: %v\n", idle, warm+alone+together, server.memory())
	return nil
}

// patient connects as soon as the server is there.
func patient() (*filesystemv1.Client, error) {
	for end := time.Now().Add(timeout); ; time.Sleep(50 * time.Millisecond) {
		limit := time.Second
		connection, err := winio.DialPipe(pipe, &limit)
		if err == nil {
			connection.Close()
			return filesystemv1.NewClient()
		}
		if time.Now().After(end) {
			return nil, err
		}
	}
}

// atOnce shares calls of one connection between so many lanes.
func atOnce(client *filesystemv1.Client, calls int64, lanes int) error {
	var begun atomic.Int64
	var done sync.WaitGroup
	failed := make(chan error, lanes)
	for range lanes {
		done.Add(1)
		go func() {
			defer done.Done()
			for begun.Add(1) <= calls {
				if _, err := pathExists(client, kubelet); err != nil {
					failed <- err
					return
				}
			}
		}()
	}
	done.Wait()
	close(failed)
	return <-failed
}

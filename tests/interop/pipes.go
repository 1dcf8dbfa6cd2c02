package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/Microsoft/go-winio"
	"github.com/kubernetes-csi/csi-proxy/client"
	filesystem "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	smb "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1"
	filesystemv1 "github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v1"
	smbv1 "github.com/kubernetes-csi/csi-proxy/client/groups/smb/v1"
)

const kubelet = `C:\var\lib\kubelet`

// pipe is that of the group and version that is tried.
var pipe = client.PipePath(filesystemv1.GroupName, filesystemv1.Version)

// pipes shows what the server does with clients of every kind, all on one server. Its node is a
// fresh one, on which waiting takes real time.
func pipes(path, _ string) error {
	server, err := serve(path, "--simulate")
	if err != nil {
		return err
	}
	defer server.kill()
	checks := []struct {
		name string
		run  func(*simulated) error
	}{
		{"every version has its pipe", everyPipe},
		{"the log names the client", audited},
		{"a second server says that the pipes are taken", func(server *simulated) error {
			return secondServer(server, path)
		}},
		{"32 clients that connect in the same instant get in", sameInstant},
		{"what is no HTTP/2 ends the connection alone", garbage},
		{"1000 connections that say nothing hold up nobody", halfOpen},
		{"a call whose client is killed is done to its end", killedClient},
	}
	for _, check := range checks {
		if err := check.run(server); err != nil {
			return fmt.Errorf("%s: %w", check.name, err)
		}
		if err := serves(); err != nil {
			return fmt.Errorf("after %q: %w", check.name, err)
		}
		fmt.Println("ok:", check.name)
	}
	fmt.Printf("%d checks, 0 failed\n", len(checks))
	return nil
}

// serves calls the server once, on a connection of its own.
func serves() error {
	client, err := filesystemv1.NewClient()
	if err != nil {
		return err
	}
	defer client.Close()
	exists, err := pathExists(client, kubelet)
	if err == nil && !exists {
		err = errors.New("the kubelet's directory is not there")
	}
	return err
}

func pathExists(client *filesystemv1.Client, path string) (bool, error) {
	limited, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	response, err := client.PathExists(limited, &filesystem.PathExistsRequest{Path: path})
	return response.GetExists(), err
}

func everyPipe(*simulated) error {
	for _, version := range versions {
		client, err := version.connect()
		if err != nil {
			return err
		}
		client.Close()
	}
	return nil
}

func audited(server *simulated) error {
	client, err := smbv1.NewClient()
	if err != nil {
		return err
	}
	defer client.Close()
	limited, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	request := &smb.NewSmbGlobalMappingRequest{RemotePath: `\\nowhere\x`, Username: "ann", Password: "hunter2"}
	if _, err := client.NewSmbGlobalMapping(limited, request); err == nil {
		return errors.New("there is no such server")
	}
	log := server.log()
	if strings.Contains(log, "hunter2") {
		return errors.New("the log has the password")
	}
	image, err := os.Executable()
	if err != nil {
		return err
	}
	for _, line := range strings.Split(log, "\n") {
		if strings.Contains(line, "NewSmbGlobalMapping") {
			for _, part := range []string{fmt.Sprint("process=", os.Getpid()), fmt.Sprintf("image=%q", image), "ann"} {
				if !strings.Contains(line, part) {
					return fmt.Errorf("no %s in %s", part, line)
				}
			}
			return nil
		}
	}
	return fmt.Errorf("no line in %s", log)
}

func secondServer(_ *simulated, path string) error {
	second := exec.Command(path, "serve", "--simulate")
	var told bytes.Buffer
	second.Stderr = &told
	err := second.Run()
	var code *exec.ExitError
	if !errors.As(err, &code) || code.ExitCode() != 1 {
		return fmt.Errorf("%v; expected exit code 1: %s", err, &told)
	}
	for _, part := range []string{`\\.\pipe\csi-proxy-`, "another program serves there; stop it first"} {
		if !strings.Contains(told.String(), part) || strings.Count(told.String(), "\n") != 1 {
			return fmt.Errorf("%s; expected one line with %q", &told, part)
		}
	}
	return nil
}

// sameInstant connects as gRPC does, once per client.
func sameInstant(*simulated) error {
	var ready, done sync.WaitGroup
	start := make(chan struct{})
	failed := make(chan error, 32)
	for range 32 {
		ready.Add(1)
		done.Add(1)
		go func() {
			defer done.Done()
			ready.Done()
			<-start
			client, err := filesystemv1.NewClient()
			if err == nil {
				_, err = pathExists(client, kubelet)
				client.Close()
			}
			if err != nil {
				failed <- err
			}
		}()
	}
	ready.Wait()
	close(start)
	done.Wait()
	close(failed)
	return <-failed
}

func garbage(*simulated) error {
	for _, said := range [][]byte{
		[]byte("GET / HTTP/1.1\r\n\r\n"),
		bytes.Repeat([]byte{0}, 4096),
		bytes.Repeat([]byte{0xff}, 4096),
		append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), bytes.Repeat([]byte{0xff}, 32)...),
	} {
		connection, err := dial()
		if err != nil {
			return err
		}
		// The server may be gone before all is said.
		_, _ = connection.Write(said)
		connection.SetReadDeadline(time.Now().Add(timeout))
		if _, err := io.ReadAll(connection); errors.Is(err, winio.ErrTimeout) {
			return errors.New("the connection stays open")
		}
		connection.Close()
	}
	return nil
}

func halfOpen(*simulated) error {
	var open []net.Conn
	for range 1000 {
		connection, err := dial()
		if err != nil {
			return err
		}
		open = append(open, connection)
	}
	err := serves()
	for _, connection := range open {
		connection.Close()
	}
	return err
}

func dial() (net.Conn, error) {
	limit := timeout
	return winio.DialPipe(pipe, &limit)
}

// killedClient has another process call, and kills it in the middle of the call.
func killedClient(server *simulated) error {
	stall := map[string]any{"operation": "create_directories", "effect": map[string]any{"stalls": 2}}
	if _, err := server.node.ask("fault", stall); err != nil {
		return err
	}
	image, err := os.Executable()
	if err != nil {
		return err
	}
	path := kubelet + `\made`
	child := exec.Command(image, "mkdir", path, "-")
	if err := child.Start(); err != nil {
		return err
	}
	if err := server.node.met("create_directories"); err != nil {
		return err
	}
	if err := child.Process.Kill(); err != nil {
		return err
	}
	_ = child.Wait()
	client, err := filesystemv1.NewClient()
	if err != nil {
		return err
	}
	defer client.Close()
	if exists, err := pathExists(client, path); exists || err != nil {
		return fmt.Errorf("the call had ended before its client was killed, or: %w", err)
	}
	for end := time.Now().Add(timeout); time.Now().Before(end); {
		if exists, err := pathExists(client, path); exists || err != nil {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
	return errors.New("the directory was not made")
}

// mkdir is what the child does.
func mkdir(path, _ string) error {
	client, err := filesystemv1.NewClient()
	if err != nil {
		return err
	}
	_, err = client.Mkdir(context.Background(), &filesystem.MkdirRequest{Path: path})
	return err
}

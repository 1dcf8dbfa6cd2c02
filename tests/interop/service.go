package main

import (
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// internalError is ERROR_INTERNAL_ERROR: Wine 8 answers it now and then instead of starting a
// program, most of all while a service ends.
const internalError = syscall.Errno(1359)

// service installs the program as a service, runs and stops it, and takes it away: as this program
// does it, and as administrators of CSI Proxy 1.x do. It must be run as an administrator.
func service(path, _ string) error {
	if state, err := said(path, "service", "status"); err != nil || state != "not installed" {
		return fmt.Errorf("there is a service csiproxy already: %s %w", state, err)
	}
	defer exec.Command("sc", "delete", "csiproxy").Run()
	port, err := freePort()
	if err != nil {
		return err
	}
	control := "tcp://" + port
	ways := []struct {
		name            string
		install, remove []string
	}{
		{
			"csi-proxy service install",
			[]string{path, "service", "install", "--", "--simulate", "--sim-control=" + control},
			[]string{path, "service", "uninstall"},
		},
		{
			"sc.exe create, with flags of CSI Proxy 1.x",
			[]string{"sc", "create", "csiproxy", "binPath=",
				path + " -windows-service -v=4 -simulate -sim-control=" + control},
			[]string{"sc", "delete", "csiproxy"},
		},
	}
	for _, way := range ways {
		if err := life(path, control, way.install, way.remove); err != nil {
			return fmt.Errorf("%s: %w", way.name, err)
		}
		fmt.Println("ok:", way.name)
	}
	fmt.Printf("%d services installed, started, stopped and removed\n", len(ways))
	return nil
}

func life(path, control string, install, remove []string) error {
	if _, err := said(install...); err != nil {
		return err
	}
	if err := becomes(path, "stopped"); err != nil {
		return err
	}
	if _, err := said("sc", "start", "csiproxy"); err != nil {
		return err
	}
	if err := becomes(path, "running"); err != nil {
		return err
	}
	if err := serves(); err != nil {
		return err
	}
	if err := stopDuringCall(path, control); err != nil {
		return err
	}
	if _, err := said(remove...); err != nil {
		return err
	}
	return becomes(path, "not installed")
}

// stopDuringCall stops the service while a call runs, which is answered.
func stopDuringCall(path, control string) error {
	node, err := connectNode(control)
	if err != nil {
		return err
	}
	stall := map[string]any{"operation": "create_directories", "effect": map[string]any{"stalls": 3}}
	if _, err := node.ask("fault", stall); err != nil {
		return err
	}
	called := make(chan error)
	go func() { called <- mkdir(kubelet+`\made`, "") }()
	if err := node.met("create_directories"); err != nil {
		return err
	}
	if _, err := said("sc", "stop", "csiproxy"); err != nil {
		return err
	}
	if err := becomes(path, "stopping"); err != nil {
		return err
	}
	if err := <-called; err != nil {
		return fmt.Errorf("the running call: %w", err)
	}
	return becomes(path, "stopped")
}

// becomes waits until the program tells that state of the service.
func becomes(path, state string) error {
	var told string
	for end := time.Now().Add(timeout); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		var err error
		if told, err = said(path, "service", "status"); err != nil || told == state {
			return err
		}
	}
	return fmt.Errorf("the service is %s, expected %s", told, state)
}

// said runs a program and answers what it prints. One that did not start is started again.
func said(command ...string) (string, error) {
	var output []byte
	var err error
	for range 3 {
		output, err = exec.Command(command[0], command[1:]...).CombinedOutput()
		if !errors.Is(err, internalError) {
			break
		}
		time.Sleep(time.Second)
	}
	text := strings.TrimSpace(string(output))
	if err != nil {
		err = errors.Join(fmt.Errorf("%v: %w", command, err), errors.New(text))
	}
	return text, err
}

func freePort() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer listener.Close()
	return listener.Addr().String(), nil
}

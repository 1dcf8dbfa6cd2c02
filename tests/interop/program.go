package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// program is a running server.
type program struct {
	command *exec.Cmd
	// What it has said before it served, by the words before the last one.
	said map[string]string
}

// start runs a program until it says a line that begins so. What it logs goes to logs.
func start(logs io.Writer, ready string, path string, arguments ...string) (*program, error) {
	command := exec.Command(path, arguments...)
	command.Stderr = logs
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	started := &program{command, map[string]string{}}
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		line := lines.Text()
		if last := strings.LastIndex(line, " "); last >= 0 {
			started.said[line[:last]] = line[last+1:]
		}
		if strings.HasPrefix(line, ready) {
			go io.Copy(io.Discard, output)
			return started, nil
		}
	}
	return nil, fmt.Errorf("%s ended before it served: %v", path, command.Wait())
}

// kill ends the program as the Task Manager does.
func (p *program) kill() error {
	if err := p.command.Process.Kill(); err != nil {
		return err
	}
	// That it was killed is no news.
	_ = p.command.Wait()
	return nil
}

// simulated is a server on a simulated node of its own.
type simulated struct {
	*program
	node *node
}

// serve starts `csi-proxy serve --simulate` on the machine of the cases.
func serve(path, machine string, flags ...string) (*simulated, error) {
	arguments := []string{"serve", "--simulate=" + machine, "--sim-control=tcp://127.0.0.1:0"}
	started, err := start(os.Stderr, "serving ", path, append(arguments, flags...)...)
	if err != nil {
		return nil, err
	}
	node, err := connectNode(started.said["simulated node at"])
	if err != nil {
		return nil, err
	}
	return &simulated{started, node}, nil
}

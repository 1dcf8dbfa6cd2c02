package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
)

// program is a running server.
type program struct {
	command *exec.Cmd
	// What it has said before it served, by the words before the last one.
	said   map[string]string
	logged *logged
}

// logged is what a program has logged so far.
type logged struct {
	mutex sync.Mutex
	text  strings.Builder
}

func (l *logged) Write(bytes []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	os.Stderr.Write(bytes)
	return l.text.Write(bytes)
}

func (p *program) log() string {
	p.logged.mutex.Lock()
	defer p.logged.mutex.Unlock()
	return p.logged.text.String()
}

// start runs a program until it says a line that begins so. What it logs goes to the standard
// error of this program too.
func start(ready string, path string, arguments ...string) (*program, error) {
	command := exec.Command(path, arguments...)
	logged := &logged{}
	command.Stderr = logged
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	started := &program{command, map[string]string{}, logged}
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

// serve starts `csi-proxy serve` with a flag that says what it simulates.
func serve(path, simulate string, flags ...string) (*simulated, error) {
	arguments := []string{"serve", simulate, "--sim-control=tcp://127.0.0.1:0"}
	started, err := start("serving ", path, append(arguments, flags...)...)
	if err != nil {
		return nil, err
	}
	node, err := connectNode(started.said["simulated node at"])
	if err != nil {
		return nil, err
	}
	return &simulated{started, node}, nil
}

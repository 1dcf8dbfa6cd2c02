package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"time"
)

// node is the simulated node behind the server, reached by its control endpoint. The protocol is
// in docs/sim-control.md.
type node struct {
	connection net.Conn
	lines      *bufio.Reader
}

// answer is what the endpoint says to one request.
type answer struct {
	Ok        any `json:"ok"`
	Error     string
	PortError *portError `json:"port_error"`
}

// portError is a call that the node refused, as Windows would.
type portError struct {
	System *struct {
		Code struct{ Win32 *uint32 }
	}
}

func connectNode(url string) (*node, error) {
	connection, err := net.Dial("tcp", strings.TrimPrefix(url, "tcp://"))
	if err != nil {
		return nil, err
	}
	return &node{connection, bufio.NewReader(connection)}, nil
}

// ask sends a verb with its parameters.
func (n *node) ask(verb string, parameters any) (answer, error) {
	request, err := json.Marshal(map[string]any{verb: parameters})
	if err != nil {
		return answer{}, err
	}
	if _, err := n.connection.Write(append(request, '\n')); err != nil {
		return answer{}, err
	}
	line, err := n.lines.ReadBytes('\n')
	if err != nil {
		return answer{}, err
	}
	var told answer
	if err := json.Unmarshal(line, &told); err != nil {
		return answer{}, err
	}
	if told.Error != "" {
		return answer{}, fmt.Errorf("the node on %s: %s", verb, told.Error)
	}
	return told, nil
}

// state is the whole machine.
func (n *node) state() (any, error) {
	told, err := n.ask("state", nil)
	return told.Ok, err
}

// met waits until a call of the operating system has been made on the node.
func (n *node) met(operation string) error {
	for end := time.Now().Add(timeout); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		counts, err := n.ask("counts", nil)
		if err != nil || strings.Contains(fmt.Sprint(counts.Ok), operation) {
			return err
		}
	}
	return fmt.Errorf("nobody has called %s", operation)
}

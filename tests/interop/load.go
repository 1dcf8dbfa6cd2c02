package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// one is a call of a version, made by its published client.
type one struct {
	group, version, method, request string
}

// mixed are calls of several groups, that ask and that change.
var mixed = []one{
	{"filesystem", "v1", "PathExists", `{"path": "C:\\var\\lib\\kubelet"}`},
	{"filesystem", "v2alpha1", "Mkdir", `{"path": "C:\\var\\lib\\kubelet\\made"}`},
	{"disk", "v1", "ListDiskLocations", `{}`},
	{"system", "v1alpha1", "GetService", `{"name": "base"}`},
	{"volume", "v1", "ListVolumesOnDisk", `{"disk_number": 3}`},
}

// load has 50 clients call the server at once, 200 times each.
func load(path, machine string) error {
	const clients, calls = 50, 200
	server, err := serve(path, "--simulate="+machine)
	if err != nil {
		return err
	}
	defer server.kill()
	fmt.Println("idle:", server.memory())
	var all times
	var mutex sync.Mutex
	var failed []error
	var done sync.WaitGroup
	begun := time.Now()
	for number := range clients {
		done.Add(1)
		go func() {
			defer done.Done()
			own, err := mixed[number%len(mixed)].times(calls)
			mutex.Lock()
			defer mutex.Unlock()
			all = append(all, own...)
			if err != nil {
				failed = append(failed, err)
			}
		}()
	}
	done.Wait()
	fmt.Println("after:", server.memory())
	fmt.Printf("%d clients, %d calls in %.1f s: %v; %d failed\n",
		clients, len(all), time.Since(begun).Seconds(), all, len(failed))
	return errors.Join(failed...)
}

// times makes the call so often on one connection.
func (o one) times(count int) (times, error) {
	client, err := o.connect()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	var own times
	for range count {
		begun := time.Now()
		if _, err := call(client, o.method, []byte(o.request)); err != nil {
			return own, fmt.Errorf("%s %s: %w", o.group, o.method, err)
		}
		own = append(own, time.Since(begun))
	}
	return own, nil
}

func (o one) connect() (io.Closer, error) {
	for _, version := range versions {
		if version.group == o.group && version.name == o.version {
			return version.connect()
		}
	}
	return nil, fmt.Errorf("there is no %s %s", o.group, o.version)
}

// times are those of calls.
type times []time.Duration

func (t times) String() string {
	if len(t) == 0 {
		return "no calls"
	}
	sorted := slices.Sorted(slices.Values(t))
	at := func(share int) float64 {
		return float64(sorted[(len(sorted)-1)*share/100].Microseconds()) / 1000
	}
	return fmt.Sprintf("median %.2f ms, 99%% below %.2f ms, longest %.2f ms", at(50), at(99), at(100))
}

// memory is what a process takes, in bytes.
type memory struct {
	working, private uint64
}

func (m memory) String() string {
	const mega = 1 << 20
	return fmt.Sprintf("%.1f MiB working set, %.1f MiB private",
		float64(m.working)/mega, float64(m.private)/mega)
}

var getProcessMemoryInfo = windows.NewLazySystemDLL("kernel32.dll").NewProc("K32GetProcessMemoryInfo")

// memory asks Windows what the program takes. Without an answer it is nothing.
func (p *program) memory() memory {
	// PROCESS_MEMORY_COUNTERS_EX
	var counters struct {
		size, pageFaults            uint32
		peakWorking, working        uint64
		peakPagedPool, pagedPool    uint64
		peakNonPagedPool, nonPaged  uint64
		pagefile, peakPagefile, own uint64
	}
	counters.size = uint32(unsafe.Sizeof(counters))
	process, err := windows.OpenProcess(windows.PROCESS_QUERY_INFORMATION, false, uint32(p.command.Process.Pid))
	if err != nil {
		return memory{}
	}
	defer windows.CloseHandle(process)
	getProcessMemoryInfo.Call(uintptr(process), uintptr(unsafe.Pointer(&counters)), uintptr(counters.size))
	return memory{counters.working, counters.own}
}

// A client of WMI by its scripting interface, as Go programs use it. Prints the disks of the
// machine that it runs on; with the number of a disk, takes that one offline first.
package main

import (
	"fmt"
	"os"
	"runtime"

	"github.com/go-ole/go-ole"
	"github.com/go-ole/go-ole/oleutil"
)

func main() {
	runtime.LockOSThread()
	if err := run(os.Args[1:]); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if err := ole.CoInitializeEx(0, ole.COINIT_MULTITHREADED); err != nil {
		return fmt.Errorf("CoInitializeEx: %w", err)
	}
	defer ole.CoUninitialize()
	services, err := connect()
	if err != nil {
		return err
	}
	defer services.Release()
	if len(arguments) > 0 {
		wql := "SELECT * FROM MSFT_Disk WHERE Number = " + arguments[0]
		if err := each(services, wql, offline); err != nil {
			return err
		}
	}
	return each(services, "SELECT * FROM MSFT_Disk", print)
}

func connect() (*ole.IDispatch, error) {
	unknown, err := oleutil.CreateObject("WbemScripting.SWbemLocator")
	if err != nil {
		return nil, fmt.Errorf("SWbemLocator: %w", err)
	}
	defer unknown.Release()
	locator, err := unknown.QueryInterface(ole.IID_IDispatch)
	if err != nil {
		return nil, fmt.Errorf("SWbemLocator: %w", err)
	}
	defer locator.Release()
	services, err := oleutil.CallMethod(locator, "ConnectServer", ".", `ROOT\Microsoft\Windows\Storage`)
	if err != nil {
		return nil, fmt.Errorf("ConnectServer: %w", err)
	}
	return services.ToIDispatch(), nil
}

// Does something with each object that a query answers.
func each(services *ole.IDispatch, wql string, do func(*ole.IDispatch) error) error {
	answer, err := oleutil.CallMethod(services, "ExecQuery", wql)
	if err != nil {
		return fmt.Errorf("ExecQuery: %w", err)
	}
	rows := answer.ToIDispatch()
	defer rows.Release()
	return oleutil.ForEach(rows, func(row *ole.VARIANT) error {
		object := row.ToIDispatch()
		defer object.Release()
		return do(object)
	})
}

func offline(disk *ole.IDispatch) error {
	answer, err := oleutil.CallMethod(disk, "ExecMethod_", "Offline")
	if err != nil {
		return fmt.Errorf("ExecMethod_: %w", err)
	}
	output := answer.ToIDispatch()
	defer output.Release()
	code, err := property(output, "ReturnValue")
	if err == nil {
		fmt.Printf("Offline returned %v\n", code)
	}
	return err
}

func print(disk *ole.IDispatch) error {
	var values [3]any
	for i, name := range []string{"Number", "Size", "IsOffline"} {
		value, err := property(disk, name)
		if err != nil {
			return err
		}
		values[i] = value
	}
	fmt.Printf("disk %v: %v bytes, offline %v\n", values[0], values[1], values[2])
	return nil
}

// By the set of properties: Wine answers E_NOTIMPL to those of an object itself.
func property(object *ole.IDispatch, name string) (any, error) {
	set, err := oleutil.GetProperty(object, "Properties_")
	if err != nil {
		return nil, fmt.Errorf("Properties_: %w", err)
	}
	defer set.Clear()
	item, err := oleutil.CallMethod(set.ToIDispatch(), "Item", name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	defer item.Clear()
	value, err := oleutil.GetProperty(item.ToIDispatch(), "Value")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	defer value.Clear()
	return value.Value(), nil
}

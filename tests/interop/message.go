package main

import (
	"fmt"
	"reflect"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// plain is a message as the cases have it: the fields that are set, with the names of the .proto
// file, and plain numbers. (Package protojson writes 64-bit numbers as text.)
func plain(message proto.Message) map[string]any {
	return plainMessage(message.ProtoReflect())
}

func plainMessage(message protoreflect.Message) map[string]any {
	fields := map[string]any{}
	message.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		fields[field.TextName()] = plainField(field, value)
		return true
	})
	return fields
}

func plainField(field protoreflect.FieldDescriptor, value protoreflect.Value) any {
	switch {
	case field.IsMap():
		entries := map[string]any{}
		value.Map().Range(func(key protoreflect.MapKey, value protoreflect.Value) bool {
			entries[key.String()] = plainValue(field.MapValue(), value)
			return true
		})
		return entries
	case field.IsList():
		list := value.List()
		items := make([]any, list.Len())
		for index := range items {
			items[index] = plainValue(field, list.Get(index))
		}
		return items
	default:
		return plainValue(field, value)
	}
}

func plainValue(field protoreflect.FieldDescriptor, value protoreflect.Value) any {
	switch field.Kind() {
	case protoreflect.MessageKind:
		return plainMessage(value.Message())
	case protoreflect.StringKind, protoreflect.BoolKind:
		return value.Interface()
	case protoreflect.EnumKind:
		return float64(value.Enum())
	case protoreflect.Uint32Kind, protoreflect.Uint64Kind:
		return float64(value.Uint())
	case protoreflect.Int32Kind, protoreflect.Int64Kind:
		return float64(value.Int())
	default:
		panic(fmt.Sprintf("no field of the API has the kind %v", field.Kind()))
	}
}

// includes tells whether all of expected is in value. A list has the same length, null is
// anything, and "?" a text that is not empty.
func includes(value, expected any) bool {
	switch expected := expected.(type) {
	case nil:
		return true
	case string:
		if expected == "?" {
			text, isText := value.(string)
			return isText && text != ""
		}
	case map[string]any:
		fields, isObject := value.(map[string]any)
		for key, expected := range expected {
			field, isThere := fields[key]
			if !isThere || !includes(field, expected) {
				return false
			}
		}
		return isObject
	case []any:
		items, isList := value.([]any)
		if !isList || len(items) != len(expected) {
			return false
		}
		for index, expected := range expected {
			if !includes(items[index], expected) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(value, expected)
}

package script

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"time"

	"github.com/neap-go/neap/core/internal/wire"
)

// Decode puts a reply of the script, as [Runner.Run] returned it, into what dst points
// to. It sends nothing, and apart from an any, dst refers to nothing of the reply. The type
// of dst decides what the reply may be:
//
//   - A struct takes an array, element by element in the order of its exported fields.
//     The array must have as many elements as the struct has such fields. Fields tagged
//     `script:"-"` are skipped.
//   - A slice takes an array of any length.
//   - A pointer takes nil, or what it points to.
//   - An any takes whatever there is, and refers to it.
//   - An integer of any size takes an integer or decimal text. A number that is too large
//     for it is an error.
//   - A float takes the same, and text with a fraction. (A script must return such text,
//     because Redis cuts off the fraction of a number.)
//   - A bool takes 1 as true, and 0 and nil as false. This is how Redis sends Lua's own
//     booleans.
//   - A string and a []byte take a string.
//   - A time.Duration takes an integer. Its field needs a tag with the unit:
//     `script:"us"`, `script:"ms"` or `script:"s"`.
//
// The error is an [*Error]. Its class is [ErrFailed] if the reply has another shape, and
// [ErrConfiguration] if dst can take no reply. It names the field, and contains nothing
// of the reply. After an error, what dst points to is partly old and partly new.
func (s *Script) Decode(reply, dst any) error {
	if !(*wire.Script)(s).Made() {
		return &Error{Class: ErrConfiguration, Err: errScript}
	}
	to := reflect.ValueOf(dst)
	if to.Kind() != reflect.Pointer || to.IsNil() {
		return &Error{Script: s.Name(), Class: ErrConfiguration, Err: fmt.Errorf("decode: dst is a %T: pass a pointer that is not nil", dst)}
	}
	if err := decode("reply", "", reply, to.Elem()); err != nil {
		class := ErrFailed
		if errors.Is(err, errTarget) {
			class = ErrConfiguration
		}
		return &Error{Script: s.Name(), Class: class, Err: err}
	}
	return nil
}

// errTarget is the error for a field that no reply could be put into.
var errTarget = errors.New("decode")

var (
	durationType = reflect.TypeFor[time.Duration]()
	units        = map[string]time.Duration{"us": time.Microsecond, "ms": time.Millisecond, "s": time.Second}
)

// decode puts one value into to. where names the place in errors, and tag is the field's
// tag.
func decode(where, tag string, from any, to reflect.Value) error {
	if to.Type() == durationType {
		return decodeDuration(where, tag, from, to)
	}
	switch to.Kind() {
	case reflect.Pointer:
		if from == nil {
			to.SetZero()
			return nil
		}
		to.Set(reflect.New(to.Type().Elem()))
		return decode(where, tag, from, to.Elem())
	case reflect.Interface:
		if to.NumMethod() > 0 {
			break
		}
		to.SetZero()
		if from != nil {
			to.Set(reflect.ValueOf(from))
		}
		return nil
	case reflect.Struct:
		return decodeStruct(where, from, to)
	case reflect.Slice:
		return decodeSlice(where, tag, from, to)
	case reflect.String:
		text, ok := from.(string)
		if !ok {
			return misfit(where, from, to)
		}
		to.SetString(text)
		return nil
	case reflect.Bool:
		n, ok := from.(int64)
		if from != nil && (!ok || n != 0 && n != 1) {
			return misfit(where, from, to)
		}
		to.SetBool(n == 1)
		return nil
	default:
		if !to.CanInt() && !to.CanUint() && !to.CanFloat() {
			break
		}
		if !decodeNumber(from, to) {
			return misfit(where, from, to)
		}
		return nil
	}
	return fmt.Errorf("%w: the %s cannot go to a %s", errTarget, where, to.Type())
}

func misfit(where string, from any, to reflect.Value) error {
	return fmt.Errorf("the %s is %s: it does not fit a %s", where, kindOf(from), to.Type())
}

func decodeSlice(where, tag string, from any, to reflect.Value) error {
	if text, ok := from.(string); ok && to.Type().Elem().Kind() == reflect.Uint8 {
		to.SetBytes([]byte(text))
		return nil
	}
	list, ok := from.([]any)
	if !ok {
		return misfit(where, from, to)
	}
	to.Set(reflect.MakeSlice(to.Type(), len(list), len(list)))
	for i, one := range list {
		if err := decode(fmt.Sprintf("%s[%d]", where, i), tag, one, to.Index(i)); err != nil {
			return err
		}
	}
	return nil
}

func decodeNumber(from any, to reflect.Value) bool {
	text, ok := from.(string)
	if n, is := from.(int64); is {
		text, ok = strconv.FormatInt(n, 10), true
	}
	if !ok {
		return false
	}
	bits := to.Type().Bits()
	switch {
	case to.CanInt():
		n, err := strconv.ParseInt(text, 10, bits)
		to.SetInt(n)
		return err == nil
	case to.CanUint():
		n, err := strconv.ParseUint(text, 10, bits)
		to.SetUint(n)
		return err == nil
	default:
		f, err := strconv.ParseFloat(text, bits)
		to.SetFloat(f)
		return err == nil
	}
}

func decodeDuration(where, tag string, from any, to reflect.Value) error {
	unit, ok := units[tag]
	if !ok {
		return fmt.Errorf("%w: the %s is a time.Duration: say its unit in a tag, script:\"us\", \"ms\" or \"s\"", errTarget, where)
	}
	n, ok := from.(int64)
	if most := int64(1<<63-1) / int64(unit); !ok || n > most || n < -most {
		return misfit(where, from, to)
	}
	to.SetInt(n * int64(unit))
	return nil
}

func decodeStruct(where string, from any, to reflect.Value) error {
	var fields []reflect.StructField
	for _, field := range reflect.VisibleFields(to.Type()) {
		if len(field.Index) == 1 && field.IsExported() && field.Tag.Get("script") != "-" {
			fields = append(fields, field)
		}
	}
	list, ok := from.([]any)
	if !ok {
		return misfit(where, from, to)
	}
	if len(list) != len(fields) {
		return fmt.Errorf("the %s has %d elements and %s %d fields (an array of Lua ends before its first nil)",
			where, len(list), to.Type(), len(fields))
	}
	for i, field := range fields {
		if err := decode("field "+field.Name, field.Tag.Get("script"), list[i], to.FieldByIndex(field.Index)); err != nil {
			return err
		}
	}
	return nil
}

func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "nil"
	case int64:
		return "an integer"
	case string:
		return "a string"
	case []any:
		return "an array"
	case error:
		return "an error"
	}
	return fmt.Sprintf("a %T", v)
}

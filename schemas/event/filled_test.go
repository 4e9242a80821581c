package event_test

import (
	"bytes"
	"fmt"
	"reflect"
	"time"

	"lieudit/schemas/event"
	"lieudit/schemas/plan"
)

// newFilledEvent is an event of a type with something in every field.
func newFilledEvent(e event.Type) event.Event {
	v := reflect.New(e.GoType).Elem()
	fillValue(v, e.GoType.Name())
	return v.Interface().(event.Event)
}

func fillValue(v reflect.Value, name string) {
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.Date(2028, 2, 29, 12, 30, 0, 123456000, time.UTC)))
		return
	case plan.Date:
		v.Set(reflect.ValueOf(plan.Date{Year: 2028, Month: 2, Day: 29}))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fillValue(v.Field(i), v.Type().Field(i).Name)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 { // a SHA-256
			v.SetBytes(bytes.Repeat([]byte{0xfe}, 32))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 3, 3))
		for i := range v.Len() {
			fillValue(v.Index(i), fmt.Sprint(name, i+1))
		}
	case reflect.String:
		v.SetString("some " + name + ` é " <&>`)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(48.8566)
	case reflect.Uint8, reflect.Uint64:
		v.SetUint(200)
	default:
		v.SetInt(1 << 53)
	}
}

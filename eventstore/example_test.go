package eventstore_test

import (
	"bytes"
	"context"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
)

// memoryVault is a vault in memory.
type memoryVault struct {
	mu   sync.Mutex
	keys map[string][]byte
	err  error
}

func (k *memoryVault) Key(_ context.Context, subject string, create bool) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err != nil {
		return nil, k.err
	}
	key, known := k.keys[subject]
	if !known && create {
		key = bytes.Repeat([]byte{byte(len(k.keys) + 1)}, 32)
		k.keys[subject] = key
	}
	if !known && key == nil {
		return nil, eventstore.ErrNoKey
	}
	if key == nil {
		return nil, eventstore.ErrDestroyed
	}
	return key, nil
}

func (k *memoryVault) DestroyKey(_ context.Context, subject string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.keys[subject] = nil
	return nil
}

func (k *memoryVault) ForgetKeys() {}

func newTestCodec() (*eventstore.Codec, *memoryVault) {
	vault := &memoryVault{keys: map[string][]byte{}}
	return eventstore.NewCodec(vault), vault
}

// exampleEvent is an event of a type with every field set; personal fields hold the given text.
func exampleEvent(t *testing.T, c event.Type, personal string) event.Event {
	t.Helper()
	v := reflect.New(c.GoType).Elem()
	fillValue(t, v, personal)
	return v.Interface().(event.Event)
}

func fillValue(t *testing.T, v reflect.Value, personal string) {
	t.Helper()
	switch v.Interface().(type) {
	case event.Personal:
		v.SetString(personal)
		return
	case time.Time:
		v.Set(reflect.ValueOf(time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC)))
		return
	case plan.Date:
		v.Set(reflect.ValueOf(plan.Date{Year: 2026, Month: 11, Day: 21}))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fillValue(t, v.Field(i), personal)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 { // a SHA-256
			v.SetBytes(bytes.Repeat([]byte{7}, 32))
			return
		}
		if v.Type().Elem().Kind() == reflect.Int64 { // lines of three numbers
			v.Set(reflect.ValueOf([]int64{7, 7, 7}))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1)) // one, so that personal texts can be counted against fields
		fillValue(t, v.Index(0), personal)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillValue(t, v.Elem(), personal)
	default:
		fillPrimitive(t, v)
	}
}

func fillPrimitive(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		v.SetString("text")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64, reflect.Int32:
		v.SetInt(7)
	case reflect.Uint8, reflect.Uint64:
		v.SetUint(7)
	case reflect.Float64:
		v.SetFloat(48.5)
	case reflect.Map: // stays empty
	default:
		t.Fatalf("no example for a %s", v.Type())
	}
}

func encodeEvents(t *testing.T, c *eventstore.Codec, stream string, events ...event.Event) []eventstore.ProposedEvent {
	t.Helper()
	batch, err := c.Encode(t.Context(), stream, uuid.NameSpaceURL, eventstore.Metadata{Actor: "token:1"}, events)
	if err != nil {
		t.Fatal(err)
	}
	return batch
}

func newRecordedEvent(stream string, p eventstore.ProposedEvent) eventstore.RecordedEvent {
	return eventstore.RecordedEvent{Stream: stream, ID: p.ID, Type: p.Type, Data: p.Data, Metadata: p.Metadata}
}

func streamOf(c event.Type) string { return c.Category() + "-le-lieu-dit" }

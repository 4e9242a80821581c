package event_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"lieudit/schemas/event"
	"lieudit/schemas/plan"
)

var update = flag.Bool("update", false, "write the schema of events that have none yet")

// TestPublishedShapesNeverChange compares each event with its checked-in schema. Logs hold events of that shape forever, so a
// schema is written once: -update creates missing files and never changes one.
func TestPublishedShapesNeverChange(t *testing.T) {
	t.Parallel()
	for _, e := range event.All() {
		file := filepath.Join("schema", e.Name+".json")
		want := schemaOf(t, e)
		got, err := os.ReadFile(file)
		switch {
		case errors.Is(err, fs.ErrNotExist) && *update:
			if err := os.WriteFile(file, want, 0o644); err != nil {
				t.Fatal(err)
			}
		case errors.Is(err, fs.ErrNotExist):
			t.Errorf("%s has no schema yet: run go test ./schemas/event -update and check in %s", e.Name, file)
		case err != nil:
			t.Fatal(err)
		case !bytes.Equal(got, want):
			t.Errorf("%s is not what %s says any more. Logs hold events of that shape: give the new shape a name of its own, "+
				"ending in .v2, and leave this one as it was", e.GoType.Name(), file)
		}
	}
}

func TestPublishedEventsStayInTheCatalog(t *testing.T) {
	t.Parallel()
	files, err := os.ReadDir("schema")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if name := strings.TrimSuffix(f.Name(), ".json"); !inCatalog(name) {
			t.Errorf("schema/%s was published, but the catalog does not hold %s: logs that hold it could not be read", f.Name(), name)
		}
	}
}

func inCatalog(name string) bool {
	_, ok := event.Lookup(name)
	return ok
}

// TestEventsFitTheirSchema checks the schemas against events as they are written.
func TestEventsFitTheirSchema(t *testing.T) {
	t.Parallel()
	for _, e := range event.All() {
		var s jsonschema.Schema
		if err := json.Unmarshal(schemaOf(t, e), &s); err != nil {
			t.Fatal(err)
		}
		resolved, err := s.Resolve(nil)
		if err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(newFilledEvent(e))
		if err != nil {
			t.Fatal(err)
		}
		var written any
		if err := json.Unmarshal(data, &written); err != nil {
			t.Fatal(err)
		}
		if err := resolved.Validate(written); err != nil {
			t.Errorf("%s as written does not fit its schema: %v", e.Name, err)
		}
		if resolved.Validate("text") == nil {
			t.Errorf("the schema of %s lets a text pass", e.Name)
		}
	}
}

// schemaOf is the schema of an event as it is checked in. Objects are open: later binaries may write more.
func schemaOf(t *testing.T, e event.Type) []byte {
	t.Helper()
	s, err := jsonschema.ForType(e.GoType, &jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[plan.Date]():      {Type: "string", Format: "date"},
		reflect.TypeFor[[]byte]():         {Types: []string{"null", "string"}, ContentEncoding: "base64"},
		reflect.TypeFor[event.Personal](): {Type: "string", Description: "personal: encrypted in the log"},
	}})
	if err != nil {
		t.Fatalf("%s: %v", e.Name, err)
	}
	openObjects(s)
	s.Title = e.Name
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(text, '\n')
}

// openObjects lets objects have members that are not declared.
func openObjects(s *jsonschema.Schema) {
	s.AdditionalProperties = nil
	for _, member := range s.Properties {
		openObjects(member)
	}
	if s.Items != nil {
		openObjects(s.Items)
	}
}

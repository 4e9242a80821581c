package body_test

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"lieudit/schemas/body"
)

var update = flag.Bool("update", false, "write the OpenAPI documents anew")

// files are the golden files, and what writes each.
var files = map[string]func() ([]byte, error){
	"openapi.json": body.API().JSON, "openapi-3.0.json": body.API().JSON30,
	"customer-area.json": body.CustomerArea().JSON, "customer-area-3.0.json": body.CustomerArea().JSON30,
}

func TestCheckedInDocumentsAreThoseOfTheStructs(t *testing.T) {
	t.Parallel()
	for file, write := range files {
		want, err := write()
		if err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile(file, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(file)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is stale (%v): run go test ./schemas/body -update and look at the difference", file, err)
		}
	}
}

package body_test

import (
	"bytes"
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "write the OpenAPI documents anew")

func TestCheckedInDocumentsAreThoseOfTheStructs(t *testing.T) {
	t.Parallel()
	for file, api := range documents {
		want, err := api().JSON()
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

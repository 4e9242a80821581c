package server_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lieudit/http/server"
	"lieudit/schemas/body"
)

func TestRoutesAndDocumentNameTheSameOperations(t *testing.T) {
	t.Parallel()
	api := body.API()
	if api.Base != server.Base {
		t.Errorf("document is about %s, the API answers under %s", api.Base, server.Base)
	}
	var documented []string
	for _, op := range api.Operations {
		documented = append(documented, op.Method+" "+op.Path)
	}
	served := server.Routes()
	slices.Sort(documented)
	slices.Sort(served)
	if diff := cmp.Diff(documented, served); diff != "" {
		t.Errorf("documented (-) and served (+) differ:\n%s", diff)
	}
}

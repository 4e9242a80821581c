package api_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lieudit/http/api"
	"lieudit/schemas/body"
)

func TestRoutesAndDocumentNameTheSameOperations(t *testing.T) {
	t.Parallel()
	document := body.API()
	if document.BasePath != api.Base {
		t.Errorf("document is about %s, the API answers under %s", document.BasePath, api.Base)
	}
	var documented []string
	for _, op := range document.Operations {
		documented = append(documented, op.Method+" "+op.Path)
	}
	served := api.Routes()
	slices.Sort(documented)
	slices.Sort(served)
	if diff := cmp.Diff(documented, served); diff != "" {
		t.Errorf("documented (-) and served (+) differ:\n%s", diff)
	}
}

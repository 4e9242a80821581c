package customerarea

import (
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lieudit/schemas/body"
)

func TestRoutesAndDocumentNameTheSameOperations(t *testing.T) {
	t.Parallel()
	if api := body.CustomerArea(); api.BasePath != Base {
		t.Errorf("document is about %s, the customer area answers under %s", api.BasePath, Base)
	}
	pattern := regexp.MustCompile(`:[^{}/]*}`)
	var served, documented []string
	for _, rt := range (&handler{}).routes() {
		served = append(served, rt.method+" "+pattern.ReplaceAllString(rt.path, "}"))
	}
	for _, op := range body.CustomerArea().Operations {
		documented = append(documented, op.Method+" "+op.Path)
	}
	slices.Sort(served)
	slices.Sort(documented)
	if diff := cmp.Diff(documented, served); diff != "" {
		t.Errorf("documented (-) and served (+) differ:\n%s", diff)
	}
}

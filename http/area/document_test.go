package area

import (
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lieudit/schemas/body"
)

func TestRoutesAndDocumentNameTheSameOperations(t *testing.T) {
	t.Parallel()
	if api := body.Area(); api.Base != Base {
		t.Errorf("document is about %s, the customer area answers under %s", api.Base, Base)
	}
	pattern := regexp.MustCompile(`:[^{}/]*}`)
	var served, documented []string
	for _, rt := range (&area{}).routes() {
		served = append(served, rt.method+" "+pattern.ReplaceAllString(rt.path, "}"))
	}
	for _, op := range body.Area().Operations {
		documented = append(documented, op.Method+" "+op.Path)
	}
	slices.Sort(served)
	slices.Sort(documented)
	if diff := cmp.Diff(documented, served); diff != "" {
		t.Errorf("documented (-) and served (+) differ:\n%s", diff)
	}
}

package api_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lieudit/http/api"
	"lieudit/schemas/body"
	"lieudit/schemas/body/openapi"
	"lieudit/schemas/body/shape"
)

// TestAnswersAreAsDocumented sends requests for the answers that operations can give, and compares each with the shapes that are
// documented for the operation. No other member is allowed.
func TestAnswersAreAsDocumented(t *testing.T) {
	t.Parallel()
	b, stale := newTestAPI(t), newTestAPI(t)
	stale.keyRing.isStale = true
	for _, op := range body.API().Operations {
		target := api.Base + op.Path
		for _, w := range []struct {
			b           *testAPI
			target, key string
			origin      string
		}{
			{b, target, "BUSINESS secret", ""}, {b, target, "STARTER publishable", "https://a.fr"}, {b, target, "STARTER publishable", "null"},
			{b, target, "STARTER publishable", ""}, {b, target, "DISCOVERY secret", ""}, {b, target, "", ""}, {stale, target, "GROWTH secret", ""},
			{b, target + "?x=1", "BUSINESS secret", ""}, {b, target + "?q=%zz", "BUSINESS secret", ""}, {b, target + "?limit=0", "BUSINESS secret", ""},
		} {
			got := w.b.send(op.Method, w.target, w.key, "Origin", w.origin)
			if !isDocumented(t, op, got.Code, readBody(t, got)) {
				t.Errorf("%s %s with %s from %q: %d %s is not documented", op.Method, w.target, w.key, w.origin, got.Code, got.Body)
			}
		}
	}
}

func isDocumented(t *testing.T, op openapi.Operation, status int, text string) bool {
	t.Helper()
	if status == 200 {
		return slices.ContainsFunc(append(op.OtherAnswers, op.Answer), func(v any) bool { return v != nil && matchesShape(t, v, text) })
	}
	return slices.ContainsFunc(op.Failures, func(f openapi.Failure) bool {
		return f.Status == status && matchesShape(t, f.Body, text)
	})
}

// matchesShape reports whether a text is JSON of the shape of v.
func matchesShape(t *testing.T, v any, text string) bool {
	t.Helper()
	s, err := shape.FromType(reflect.TypeOf(v))
	if err != nil {
		t.Fatal(err)
	}
	schema, err := s.Schema(shape.SchemaOptions{IsClosed: true}).Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	var got any
	if err := json.NewDecoder(strings.NewReader(text)).Decode(&got); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return schema.Validate(got) == nil
}

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

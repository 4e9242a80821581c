package reference_test

import (
	"encoding/json"
	"fmt"
	"go/format"
	"mime"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lieudit/http/pages/docs/reference"
	"lieudit/schemas/body"
	"lieudit/schemas/body/openapi"
)

func documents() []*reference.Document {
	return []*reference.Document{reference.API(), reference.Area()}
}

func TestEveryOperationIsOnOnePage(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, source := range []openapi.API{body.API(), body.CustomerArea()} {
		for _, op := range source.Operations {
			id := openapi.OperationID(op)
			page := reference.Find(id)
			if page == nil {
				t.Errorf("%s is on no page", id)
				continue
			}
			if seen[id] || !slices.ContainsFunc(page.Methods, func(m reference.Method) bool { return m.Slug == id && m.Method == op.Method && m.Path == op.Path }) {
				t.Errorf("%s is not the operation of the page %s", id, page.Slug)
			}
			seen[id] = true
		}
	}
	if reference.Find("rien") != nil {
		t.Error("any name is an operation")
	}
}

func TestOperationsOfTheAPITellWhatCustomersNeed(t *testing.T) {
	t.Parallel()
	for _, op := range reference.API().All() {
		switch {
		case op.Title.FR == "" || op.Title.EN == "" || op.Title.IsForeign || op.Use.FR == "" || op.Use.EN == "":
			t.Errorf("%s has no title or use in both languages", op.Slug)
		case op.IsPublic == (op.Plans != nil):
			t.Errorf("%s: public %v, plans %v", op.Slug, op.IsPublic, op.Plans)
		case !slices.ContainsFunc(op.Examples, func(e reference.Example) bool { return e.Status < 300 && e.Answer != "" }):
			t.Errorf("%s has no example", op.Slug)
		case len(op.Failures) == 0 || op.Failures[0].Name == "":
			t.Errorf("%s has no failures", op.Slug)
		}
	}
	for _, op := range reference.Area().All() {
		if op.IsPublic != (op.Methods[0].Path == "/sessions" && op.Methods[0].Method == "POST") {
			t.Errorf("%s: the roles are %v", op.Slug, op.Roles)
		}
	}
}

// TestEveryTextIsInFrench finds texts of the API without French. Texts of the customer area may wait: they are shown in English, marked as
// such, and counted. French of texts that no document has any more is named too.
func TestEveryTextIsInFrench(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for _, d := range documents() {
		missing := d.ForeignTexts()
		if !d.IsArea && len(missing) > 0 {
			t.Errorf("no French in french.json for %d texts: %q", len(missing), missing)
		}
		if d.IsArea && len(missing) > 0 {
			t.Logf("%d texts of the customer area are English alone: %q", len(missing), missing)
		}
		for _, text := range d.Texts() {
			used[text] = true
		}
	}
	var french map[string]string
	text, err := os.ReadFile("french.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &french); err != nil {
		t.Fatal(err)
	}
	for english, fr := range french {
		switch {
		case !used[english]:
			t.Logf("french.json has %q, which no document has", english)
		case fr == "" || strings.ContainsAny(fr, "'\""):
			t.Errorf("%q is no French typography", fr)
		}
	}
}

func TestExamplesBelongToTheirOperations(t *testing.T) {
	t.Parallel()
	for _, e := range reference.Examples() {
		op := reference.Find(e.Operation)
		if op == nil || e.Status == 0 || strings.Contains(e.Answer+e.Request.Body+e.Request.Target, "${") {
			t.Fatalf("%s %q: operation %v, status %d", e.Scene, e.Title, op, e.Status)
		}
		i := slices.IndexFunc(op.Methods, func(m reference.Method) bool { return m.Slug == e.Operation })
		m := op.Methods[i]
		values, err := url.ParseQuery(e.Request.Query())
		if err != nil || m.Method != e.Request.Method {
			t.Errorf("%s %q: %v, %s", e.Scene, e.Title, err, e.Request.Method)
		}
		for name := range values {
			if !slices.ContainsFunc(m.Query, func(f reference.Field) bool { return f.Name == name }) {
				t.Errorf("%s %q sends %s, which %s does not take", e.Scene, e.Title, name, e.Operation)
			}
		}
		if mediaType, _, _ := mime.ParseMediaType(e.MediaType); mediaType == "application/json" && !json.Valid([]byte(e.Answer)) {
			t.Errorf("%s %q is not JSON", e.Scene, e.Title)
		}
	}
}

// TestSnippetsAreOfTheirLanguages compiles every snippet as far as the machine can: Go by its own parser, the others where their programs
// are installed, all snippets of a language in one file.
func TestSnippetsAreOfTheirLanguages(t *testing.T) {
	t.Parallel()
	sources := map[string]*strings.Builder{"curl": {}, "JavaScript": {}, "Python": {}}
	for _, e := range reference.Examples() {
		for _, s := range reference.Snippets(e, reference.Server{URL: "https://api.exemple.fr/services/v1", KeyVariable: "LIEUDIT_KEY"}) {
			switch s.Language {
			case "Go":
				if formatted, err := format.Source([]byte(s.Code + "\n")); err != nil || string(formatted) != s.Code+"\n" {
					t.Errorf("%s %q in Go: %v\n%s", e.Scene, e.Title, err, s.Code)
				}
			case "JavaScript": // each in a function, so that their names do not clash
				code := strings.TrimPrefix(s.Code, "import { openAsBlob } from \"node:fs\";\n")
				fmt.Fprintf(sources[s.Language], "async () => {\n%s\n};\n", code)
			default:
				fmt.Fprintf(sources[s.Language], "%s\n\n", s.Code)
			}
		}
	}
	for language, c := range map[string]struct {
		file    string
		command []string
	}{
		"curl": {"all.sh", []string{"sh", "-n"}}, "JavaScript": {"all.mjs", []string{"node", "--check"}}, "Python": {"all.py", []string{"python3", "-m", "py_compile"}},
	} {
		if _, err := exec.LookPath(c.command[0]); err != nil {
			t.Logf("%s is not installed: its snippets are not checked", c.command[0])
			continue
		}
		file := filepath.Join(t.TempDir(), c.file)
		if err := os.WriteFile(file, []byte(sources[language].String()), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(c.command[0], append(c.command[1:], file)...).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", language, err, out)
		}
	}
}

// TestSnippetsQuoteHostileText writes requests whose texts end strings and lines in each language.
func TestSnippetsQuoteHostileText(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`"><script>alert(1)</script>`, `'; rm -rf / #`, "$(id) `id` \\", `\u0026 </script>`, strings.Repeat("x", 200), "\u202eمرحبا"} {
		e := reference.Example{Operation: "get_address_verify", Request: reference.ExampleRequest{Method: "GET", Target: "/address/verify?q=" + url.QueryEscape(text)}}
		for _, s := range reference.Snippets(e, reference.Server{URL: "https://api.exemple.fr/services/v1", KeyVariable: "LIEUDIT_KEY"}) {
			switch s.Language {
			case "Go":
				if _, err := format.Source([]byte(s.Code)); err != nil {
					t.Errorf("%q in Go: %v\n%s", text, err, s.Code)
				}
			case "curl":
				line := strings.NewReplacer("curl", "printf '%s\\n'", "-G", "").Replace(s.Code)
				out, err := exec.Command("sh", "-c", line).Output()
				if err != nil || !strings.Contains(string(out), "q="+text+"\n") {
					t.Errorf("%q in a shell: %v\n%s\n%s", text, err, s.Code, out)
				}
			}
		}
	}
}

func TestPostmanCollectionHasWhatItsSchemaRequires(t *testing.T) {
	t.Parallel()
	text, err := reference.PostmanCollection("https://api.exemple.fr/services/v1")
	if err != nil {
		t.Fatal(err)
	}
	var c struct {
		Info struct{ Name, Schema string }
		Auth struct{ Type string }
		Item []struct {
			Name string
			Item []struct {
				Name    string
				Request struct {
					Method string
					URL    struct {
						Raw      string
						Host     []string
						Path     []string
						Variable []struct{ Key string }
					}
				}
				Response []struct {
					Code   int
					Header []struct{ Key, Value string }
				}
			}
		}
		Variable []struct{ Key, Value string }
	}
	if err := json.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	if c.Info.Name == "" || c.Info.Schema != "https://schema.getpostman.com/json/collection/v2.1.0/collection.json" || c.Auth.Type != "bearer" {
		t.Errorf("info %+v, auth %+v", c.Info, c.Auth)
	}
	if len(c.Variable) != 2 || c.Variable[0].Key != "baseUrl" || c.Variable[1].Key != "key" || c.Variable[1].Value != "" {
		t.Errorf("variables %+v", c.Variable)
	}
	requests := 0
	for _, folder := range c.Item {
		for _, item := range folder.Item {
			requests++
			u := item.Request.URL
			if item.Name == "" || item.Request.Method == "" || len(u.Host) != 1 || u.Host[0] != "{{baseUrl}}" || !strings.HasPrefix(u.Raw, "{{baseUrl}}/") {
				t.Errorf("%s: %+v", item.Name, item.Request)
			}
			for _, segment := range u.Path {
				name, isVariable := strings.CutPrefix(segment, ":")
				if isVariable && !slices.ContainsFunc(u.Variable, func(v struct{ Key string }) bool { return v.Key == name }) || strings.ContainsAny(segment, "{}") {
					t.Errorf("%s: the segment %q of %v has no variable", item.Name, segment, u.Path)
				}
			}
		}
	}
	if want := len(body.API().Operations); requests != want {
		t.Errorf("%d requests, want %d", requests, want)
	}
}

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"lieudit/eventstore/deadlinetest"
	"lieudit/eventstore/leveltest"
	"lieudit/schemas/body"
	"lieudit/schemas/body/openapi"
)

// clientsVariable names the folder with generators of clients and schemathesis, as cmd/check installs them.
const clientsVariable = "LIEUDIT_TEST_CLIENTS"

// clientTools are the programs of that folder.
type clientTools string

// findClientTools finds the folder. The tests that need it belong to the whole level of the check.
func findClientTools(t *testing.T) clientTools {
	t.Helper()
	folder, missing := os.Getenv(clientsVariable), ""
	if folder == "" {
		missing = "no generators of clients: go run ./cmd/check -all installs them, or " + clientsVariable + " names their folder"
	}
	leveltest.Need(t, leveltest.Whole, missing)
	return clientTools(folder)
}

// run runs a program of the folder in another folder, and fails the test with what it says. It returns that.
func (tools clientTools) run(t *testing.T, folder string, command ...string) string {
	t.Helper()
	cmd := exec.CommandContext(deadlinetest.Context(t, 5*time.Minute), command[0], command[1:]...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(),
		"PYTHONPATH="+filepath.Join(string(tools), "python"), "PYTHONDONTWRITEBYTECODE=1", "GOFLAGS=-mod=mod", "GOWORK=off",
		"PATH="+filepath.Join(string(tools), "python", "bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
	startedAt := time.Now()
	output, err := cmd.CombinedOutput()
	t.Logf("%s: %.1f s", filepath.Base(command[0]), time.Since(startedAt).Seconds())
	if err != nil {
		t.Errorf("%v: %v\n%s", command, err, output)
	}
	return string(output)
}

// node is the path of a program of npm.
func (tools clientTools) node(name string) string {
	return filepath.Join(string(tools), "node", "node_modules", ".bin", name)
}

// surface is one of the two documents, with the service that keeps it.
type surface struct {
	name, document string // "api", and the document's file without its ending
	url, token     string
	api            openapi.API
}

// clientSurfaces are the two surfaces of a running service.
func clientSurfaces(t *testing.T, p *process) []surface {
	t.Helper()
	service := p.testService(t)
	key := p.readDemoKey(t)
	folder, err := filepath.Abs("../../schemas/body")
	if err != nil {
		t.Fatal(err)
	}
	return []surface{
		{"api", filepath.Join(folder, "openapi"), service.api, key, body.API()},
		{"customer-area", filepath.Join(folder, "customer-area"), service.area, service.operator, body.CustomerArea()},
	}
}

// call is what one program sends by a generated client, and the status that it is to be answered; 0: 200.
type call struct {
	ID     string          `json:"id"`
	Path   []string        `json:"path,omitempty"`
	Query  json.RawMessage `json:"query,omitempty"`
	Body   json.RawMessage `json:"body,omitempty"`
	Form   json.RawMessage `json:"form,omitempty"`
	Status int             `json:"status,omitempty"`
	Text   bool            `json:"text,omitempty"` // the answer is no JSON
}

// readCalls reads the calls of a surface, with ids in the place of the words that begin with $.
func (s surface) readCalls(t *testing.T, ids map[string]string) (calls []call) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata/clients", s.name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for name, id := range ids {
		text = strings.ReplaceAll(text, name, id)
	}
	if err := json.Unmarshal([]byte(text), &calls); err != nil {
		t.Fatal(err)
	}
	return calls
}

// post asks the customer area for something new, and is its id.
func (s surface) post(t *testing.T, path, content string) string {
	t.Helper()
	var made struct{ ID string }
	s.exchange(t, "POST", path, content, &made)
	return made.ID
}

func (s surface) exchange(t *testing.T, method, path, content string, answer any) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.token)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(answer); err != nil || response.StatusCode > 201 {
		t.Fatalf("%s %s: %d, %v", method, path, response.StatusCode, err)
	}
}

// clientLanguages generate a client into a folder, compile it, and call every operation by it.
var clientLanguages = map[string]func(*testing.T, clientTools, surface, string, []call){
	"python": callByPython, "go": callByGo, "typescript": callByTypeScript,
}

func TestGeneratedClientsCallEveryOperation(t *testing.T) {
	t.Parallel()
	tools := findClientTools(t)
	p := startProcessReady(t)
	surfaces := clientSurfaces(t, p)
	area := surfaces[1]
	var found struct{ Matches []struct{ ID string } }
	surfaces[0].exchange(t, "GET", "/address/verify?q=rue+de+la+mairie+toulouse", "", &found)
	if len(found.Matches) == 0 {
		t.Fatal("no address to look up")
	}
	for _, language := range slices.Sorted(maps.Keys(clientLanguages)) {
		ids := map[string]string{
			"$NAME": "by-" + language, "$ADDRESS": found.Matches[0].ID,
			"$KEY":   area.post(t, "/accounts/demo/keys", `{"kind":"publishable","label":"clients","origins":["https://exemple.fr"]}`),
			"$TOKEN": area.post(t, "/tokens", `{"role":"auditor","label":"clients"}`),
		}
		for _, s := range surfaces {
			t.Run(language+"/"+s.name, func(t *testing.T) {
				calls := s.readCalls(t, ids)
				if got, want := len(calls), len(s.api.Operations); got != want {
					t.Errorf("%d calls of %d operations", got, want)
				}
				folder := t.TempDir()
				text, err := json.Marshal(calls)
				if err != nil {
					t.Fatal(err)
				}
				writeClientFile(t, filepath.Join(folder, "calls.json"), text)
				clientLanguages[language](t, tools, s, folder, calls)
			})
		}
	}
}

func writeClientFile(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// copyClientFile copies a file of testdata or of the tools into a folder.
func copyClientFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	writeClientFile(t, to, text)
}

// callByPython uses the client of openapi-python-client. The program imports every module that it calls.
func callByPython(t *testing.T, tools clientTools, s surface, folder string, _ []call) {
	t.Helper()
	tools.run(t, folder, "python3", "-m", "openapi_python_client", "generate", "--path", s.document+".json", "--output-path", "generated", "--meta", "none", "--fail-on-warning")
	copyClientFile(t, "testdata/clients/call.py", filepath.Join(folder, "call.py"))
	tools.run(t, folder, "python3", "call.py", "generated", s.url, s.token, "calls.json")
}

// callByGo uses the client of oapi-codegen, which reads OpenAPI 3.0.
func callByGo(t *testing.T, tools clientTools, s surface, folder string, _ []call) {
	t.Helper()
	if err := os.Mkdir(filepath.Join(folder, "generated"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		copyClientFile(t, filepath.Join(string(tools), "go", name), filepath.Join(folder, name))
	}
	copyClientFile(t, "testdata/clients/call.go.txt", filepath.Join(folder, "main.go"))
	tools.run(t, folder, filepath.Join(string(tools), "go", "oapi-codegen"), "-generate", "types,client", "-package", "generated", "-o", "generated/client.go", s.document+"-3.0.json")
	tools.run(t, folder, "go", "run", ".", s.url, s.token, "calls.json")
}

// pathVariable is a variable of a path.
var pathVariable = regexp.MustCompile(`\{(\w+)\}`)

// callByTypeScript uses the types of openapi-typescript by openapi-fetch. The calls are written as code, so that the compiler
// checks them.
func callByTypeScript(t *testing.T, tools clientTools, s surface, folder string, calls []call) {
	t.Helper()
	if err := os.Symlink(filepath.Join(string(tools), "node", "node_modules"), filepath.Join(folder, "node_modules")); err != nil {
		t.Fatal(err)
	}
	copyClientFile(t, "testdata/clients/package.json", filepath.Join(folder, "package.json"))
	tools.run(t, folder, tools.node("openapi-typescript"), s.document+".json", "-o", "api.d.ts", "--default-non-nullable=false")
	writeClientFile(t, filepath.Join(folder, "call.ts"), s.typeScriptCalls(calls))
	tools.run(t, folder, tools.node("tsc"), "--strict", "--module", "nodenext", "--target", "es2023", "--lib", "es2023,dom", "--skipLibCheck", "call.ts")
	tools.run(t, folder, "node", "call.js", s.url, s.token)
}

// typeScriptCalls is the program that makes the calls.
func (s surface) typeScriptCalls(calls []call) []byte {
	var out bytes.Buffer
	out.WriteString(`import createClient from "openapi-fetch";
import type { paths } from "./api.js";
declare const process: { argv: string[]; exit(code: number): never };
const client = createClient<paths>({ baseUrl: process.argv[2], headers: { Authorization: "Bearer " + process.argv[3] } });
const toForm = (fields: object) => { const form = new FormData(); for (const [k, v] of Object.entries(fields)) form.append(k, v); return form; };
let failed = false;
function check(id: string, want: number, got: { response: Response; data?: unknown; error?: unknown }) {
  if (got.response.status === want && (got.data ?? got.error) !== undefined) return;
  console.log(id, got.response.status, "want", want, JSON.stringify(got.error));
  failed = true;
}
`)
	ids := map[string]openapi.Operation{}
	for _, op := range s.api.Operations {
		ids[openapi.OperationID(op)] = op
	}
	for _, c := range calls {
		op := ids[c.ID]
		fmt.Fprintf(&out, "check(%q, %d, await client.%s(%q, {%s}));\n", c.ID, max(c.Status, 200), op.Method, op.Path, c.typeScriptOptions(op))
	}
	out.WriteString("process.exit(failed ? 1 : 0);\n")
	return out.Bytes()
}

// typeScriptOptions are the members of the options of one call.
func (c call) typeScriptOptions(op openapi.Operation) string {
	var path, params, options []string
	for i, m := range pathVariable.FindAllStringSubmatch(op.Path, -1) {
		path = append(path, fmt.Sprintf("%s: %q", m[1], c.Path[i]))
	}
	if path != nil {
		params = append(params, "path: {"+strings.Join(path, ", ")+"}")
	}
	if c.Query != nil {
		params = append(params, "query: "+string(c.Query))
	}
	if params != nil {
		options = append(options, "params: {"+strings.Join(params, ", ")+"}")
	}
	if c.Body != nil {
		options = append(options, "body: "+string(c.Body))
	}
	if c.Form != nil {
		options = append(options, "body: "+string(c.Form)+", bodySerializer: toForm")
	}
	if c.Text {
		options = append(options, `parseAs: "text"`)
	}
	return strings.Join(options, ", ")
}

func TestLintersFindNothingInTheDocuments(t *testing.T) {
	t.Parallel()
	tools := findClientTools(t)
	folder := t.TempDir()
	writeClientFile(t, filepath.Join(folder, ".spectral.yaml"), []byte("extends: [\"spectral:oas\"]\n"))
	documents, err := filepath.Glob("../../schemas/body/*.json")
	if err != nil || len(documents) != 4 {
		t.Fatalf("%v, %v", documents, err)
	}
	for i, document := range documents {
		if documents[i], err = filepath.Abs(document); err != nil {
			t.Fatal(err)
		}
	}
	found := tools.run(t, folder, append([]string{tools.node("redocly"), "lint", "--format", "github-actions"}, documents...)...)
	if strings.Contains(found, "::warning") {
		t.Error(found)
	}
	tools.run(t, folder, append([]string{tools.node("spectral"), "lint", "--ruleset", ".spectral.yaml", "--fail-severity", "hint"}, documents...)...)
}

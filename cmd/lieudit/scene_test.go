package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"
)

// scene is one file of testdata/api: a rule, the commands that set the stage (given), then requests (when) and
// what is to be answered (then). A title may follow when and then behind a colon.
type scene struct {
	archive   *txtar.Archive
	fixture   string // "addresses": where there are some; "alone": on a service of its own; "node": whose log is on a node of its own
	variables variables
}

func parseScene(t *testing.T, file string) *scene {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{archive: archive, variables: variables{}}
	for _, f := range archive.Files {
		if slices.Contains([]string{"addresses", "alone", "node"}, f.Name) {
			s.fixture = f.Name
		}
	}
	return s
}

// play acts a scene out and returns its file as it is to be when all that was answered is right.
func (s *scene) play(t *testing.T, svc *testService) []byte {
	t.Helper()
	s.variables["operator"] = svc.operator
	for _, name := range []string{"account", "other", "agency"} {
		s.variables[name] = name + "-" + svc.uniqueName()
	}
	played := &txtar.Archive{Comment: s.archive.Comment}
	for i, f := range s.archive.Files {
		switch section, title, _ := strings.Cut(f.Name, ":"); section {
		case "given":
			s.runGivenCommands(t, svc, string(f.Data))
			played.Files = append(played.Files, f)
		case "when":
			answer := s.sendRequest(t, svc, string(f.Data))
			for tries := 0; tries < 50 && s.isPremature(svc, i, answer); tries++ {
				time.Sleep(100 * time.Millisecond)
				answer = s.sendRequest(t, svc, string(f.Data))
			}
			played.Files = append(played.Files, f, txtar.File{Name: strings.TrimSuffix("then:"+title, ":"), Data: answer})
		case "then": // made anew
		default:
			played.Files = append(played.Files, f)
		}
	}
	return txtar.Format(played)
}

// runGivenCommands runs commands, one a line. NAME = in front of one keeps its answer: ${NAME.id} and so on, and as ${NAME}
// the token. "log stop" and "log start" are not commands of the program: they take the node away and bring it back.
func (s *scene) runGivenCommands(t *testing.T, svc *testService, commands string) {
	t.Helper()
	for line := range strings.Lines(commands) {
		line = strings.TrimSpace(line)
		name, command, named := strings.Cut(line, " = ")
		switch {
		case line == "":
		case line == "log stop":
			svc.node.stop()
			svc.node.stop = func() {} // it is stopped
			waitUntil(t, "keys are not served", func() bool { return !svc.areKeysChecked(t, s.variables["KEY"]) })
		case line == "log start":
			svc.node.start(t)
			waitUntil(t, "keys are served again", func() bool { return svc.statusOfMe(t, s.variables["KEY"]) == 200 })
		case named:
			s.variables.storeFields(t, name, svc.runCommand(t, s.variables.substitute(t, command)+" --json"))
		default:
			svc.runCommand(t, s.variables.substitute(t, line))
		}
	}
}

// sendRequest sends a request: a line "GET /me" (of the API) or "area GET /accounts", headers, an empty line, a body.
func (s *scene) sendRequest(t *testing.T, svc *testService, text string) []byte {
	t.Helper()
	head, content, _ := strings.Cut(s.variables.substitute(t, text), "\n\n")
	lines := strings.Split(strings.TrimSpace(head), "\n")
	target := strings.Fields(lines[0])
	base := svc.api
	if len(target) == 3 {
		base = svc.listenerURL(t, target[0])
		target = target[1:]
	}
	req, err := http.NewRequestWithContext(t.Context(), target[0], base+target[1], strings.NewReader(strings.TrimSuffix(content, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines[1:] {
		name, value, _ := strings.Cut(line, ":")
		req.Header[name] = append(req.Header[name], strings.TrimSpace(value)) // as written, nothing tidied
	}
	resp, err := svc.client.Do(req)
	if err != nil {
		t.Fatalf("%s: %v", lines[0], err)
	}
	defer resp.Body.Close()
	response := formatResponse(t, resp)
	if found := regexp.MustCompile(`"curseur": "([^"]+)"`).FindStringSubmatch(response); found != nil {
		s.variables["curseur"] = found[1] // for the request after
	}
	return []byte(s.variables.maskValues(response))
}

// isPremature says whether an answer is to be asked for again: that of an instance with no time to look at its log, and
// that of a list which is behind the write before, as it may be after a refusal, or on a machine that is too busy.
func (s *scene) isPremature(svc *testService, when int, answer []byte) bool {
	if svc.node == nil && isKeyRingUnavailable(answer) {
		return true
	}
	follows := s.archive.Files[min(when+1, len(s.archive.Files)-1)]
	return strings.HasPrefix(string(s.archive.Files[when].Data), "area GET") &&
		strings.HasPrefix(follows.Name, "then") && !*update && !bytes.Equal(follows.Data, answer)
}

// isKeyRingUnavailable says whether an instance could not vouch for its keys. Nothing was done then; how outages are answered
// has scenes of its own.
func isKeyRingUnavailable(answer []byte) bool {
	return bytes.Contains(answer, []byte("Authentication service unavailable"))
}

// contractHeaders are the headers that the contract is about.
func contractHeaders() []string {
	return []string{
		"Content-Type", "Allow", "Location", "Retry-After", "X-Request-Id", "Set-Cookie", "Www-Authenticate",
		"Access-Control-Allow-Origin", "Access-Control-Allow-Methods", "Access-Control-Allow-Headers",
		"Access-Control-Max-Age", "Access-Control-Allow-Credentials",
	}
}

// formatResponse writes an answer down: its status, the headers that matter, its body with JSON indented.
func formatResponse(t *testing.T, resp *http.Response) string {
	t.Helper()
	var out strings.Builder
	fmt.Fprintln(&out, resp.StatusCode)
	for _, name := range contractHeaders() {
		for _, value := range resp.Header[name] {
			fmt.Fprintf(&out, "%s: %s\n", name, value)
		}
	}
	content, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var pretty bytes.Buffer
	if json.Indent(&pretty, bytes.TrimSpace(content), "", "  ") == nil {
		content = pretty.Bytes()
	}
	if len(content) > 0 {
		fmt.Fprintf(&out, "\n%s\n", content)
	}
	return out.String()
}

func mustReadFile(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func mustWriteFile(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

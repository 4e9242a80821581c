package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"lieudit/cmd/lieudit/service"
	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/queries/address/officialtest"
	"lieudit/schemas/body"
	"lieudit/schemas/plan"
)

var update = flag.Bool("update", false, "write what is answered now into testdata/api")

const scenarioPattern = "testdata/api/*.txtar"

// TestAPI runs every scenario on the embedded parts: journal and SQLite.
func TestAPI(t *testing.T) {
	t.Parallel()
	came := runAllScenarios(t, func(*testing.T, *service.Config) {})
	compareExamples(t, came)
}

// TestAPIOnServers runs every scenario again on a node and Postgres.
func TestAPIOnServers(t *testing.T) {
	t.Parallel()
	runAllScenarios(t, func(t *testing.T, c *service.Config) { withServers(startNode(t), sqldbtest.NewPostgresDatabase(t))(c) })
}

// TestAPIThroughPgBouncer runs every scenario on a node and Postgres, where each transaction may come to another session, and as a
// user who owns the database and nothing else.
func TestAPIThroughPgBouncer(t *testing.T) {
	t.Parallel()
	runAllScenarios(t, func(t *testing.T, c *service.Config) {
		withServers(startNode(t), sqldbtest.NewPooledDatabase(t, sqldbtest.TransactionPooling))(c)
	})
}

// runAllScenarios runs the scenarios of every route.
func runAllScenarios(t *testing.T, change func(*testing.T, *service.Config)) *answerRecord {
	t.Helper()
	return runScenarios(t, scenarioPattern, change)
}

// runScenarios runs the scenarios of a pattern in parallel on one service; those that need it get a service of their own. It returns what
// came that scenarios mask.
func runScenarios(t *testing.T, which string, change func(*testing.T, *service.Config)) *answerRecord {
	t.Helper()
	files, err := filepath.Glob(which)
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	shared := startService(t, func(c *service.Config) { change(t, c) })
	withOfficialAddresses := startServiceWithAddresses(t, func(c *service.Config) { change(t, c) })
	came := &answerRecord{}
	t.Run("scenarios", func(t *testing.T) { // returns when all parallel scenarios have ended
		for _, file := range files {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
				t.Parallel()
				s := parseScenario(t, file)
				s.record = func(title, answer string) { came.add(strings.TrimSuffix(filepath.Base(file), ".txtar"), title, answer) }
				compareScenario(t, file, s.run(t, s.selectService(t, shared, withOfficialAddresses, change)))
			})
		}
	})
	return came
}

// startServiceWithAddresses starts a service and imports the real addresses of Lozère and Bondy into it, and the roads of Bondy. It
// returns nil where the official files are missing.
func startServiceWithAddresses(t *testing.T, change func(*service.Config)) *testService {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(officialtest.Folder(), "ban", "*.csv.gz"))
	if err != nil || len(files) == 0 {
		t.Logf("no scenarios about addresses: no official data in %s; LIEUDIT_TEST_DATA says where it is", officialtest.Folder())
		return nil
	}
	svc := startService(t, change)
	svc.runCommand(t, "ban import --millesime 2024-10-01 --data "+svc.data+" "+strings.Join(files, " "))
	roads, err := os.ReadFile(filepath.Join(officialtest.Folder(), "osm", "bondy_2023.osm.pbf"))
	if err != nil {
		t.Logf("no scenarios about routes: %v", err)
		return svc
	}
	dated := filepath.Join(t.TempDir(), "bondy-2023-06-01.osm.pbf") // the map says no date
	if err := os.WriteFile(dated, roads, 0o600); err != nil {
		t.Fatal(err)
	}
	svc.runCommand(t, "roads import --data "+svc.data+" "+dated)
	svc.hasRoads = true
	return svc
}

// selectService returns the service that a scenario runs on: the shared one, the one with addresses, one of its own, or one
// of its own on a node that the scenario can stop.
func (s *scenario) selectService(t *testing.T, shared, withOfficialAddresses *testService, change func(*testing.T, *service.Config)) *testService {
	t.Helper()
	switch s.fixture {
	case "":
		return shared
	case "addresses", "roads":
		if withOfficialAddresses == nil || s.fixture == "roads" && !withOfficialAddresses.hasRoads {
			officialtest.SkipOrFail(t, "this scenario is about real "+s.fixture)
		}
		return withOfficialAddresses
	case "node":
		n := startNode(t)
		svc := startService(t, func(c *service.Config) {
			change(t, c)
			c.EventStore = n.address()
		})
		svc.node = n
		return svc
	}
	return startService(t, func(c *service.Config) { change(t, c) })
}

// compareScenario compares a file with what a run of its scenario returned. With -update it writes that into the file.
func compareScenario(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(mustReadFile(t, file)), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// scenario is one file of testdata/api: a rule, the commands that prepare the service (given), requests (when) and the wanted
// answers (then). A title may follow when and then behind a colon.
type scenario struct {
	archive   *txtar.Archive
	fixture   string // "addresses": a service with real ones; "roads": the same, with the roads of Bondy; "alone": a service of its own; "node": its log is on a node; "": any
	variables variables
	record    func(title, answer string) // is called with each answer as it came
}

// parseScenario reads a scenario. A section named addresses, roads, alone or node selects its fixture.
func parseScenario(t *testing.T, file string) *scenario {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s := &scenario{archive: archive, variables: variables{}, record: func(string, string) {}}
	for _, f := range archive.Files {
		if slices.Contains([]string{"addresses", "roads", "alone", "node"}, f.Name) {
			s.fixture = f.Name
		}
	}
	return s
}

// run sends the requests of a scenario and returns its file with the answers that came: the very file when all are right.
func (s *scenario) run(t *testing.T, svc *testService) []byte {
	t.Helper()
	s.variables["operator"] = svc.operator
	for _, name := range []string{"account", "other", "agency"} {
		s.variables[name] = name + "-" + svc.uniqueName()
	}
	answered := &txtar.Archive{Comment: s.archive.Comment}
	for i, f := range s.archive.Files {
		switch section, title, _ := strings.Cut(f.Name, ":"); section {
		case "given":
			s.runGivenCommands(t, svc, string(f.Data))
			answered.Files = append(answered.Files, f)
		case "when":
			answer := s.sendRequest(t, svc, string(f.Data))
			for tries := 0; tries < 50 && s.isPremature(svc, i, answer); tries++ {
				time.Sleep(100 * time.Millisecond)
				answer = s.sendRequest(t, svc, string(f.Data))
			}
			s.record(strings.TrimSpace(title), string(answer))
			answered.Files = append(answered.Files, f, txtar.File{Name: strings.TrimSuffix("then:"+title, ":"), Data: []byte(s.variables.maskValues(string(answer)))})
		case "then": // replaced by the answer that came
		default:
			answered.Files = append(answered.Files, f)
		}
	}
	return txtar.Format(answered)
}

// runGivenCommands runs commands, one a line. "NAME = command" keeps the fields of what it prints as ${NAME.id} and so on,
// and its token as ${NAME}. "log stop" and "log start" are not commands of the program: they stop the node and start it.
func (s *scenario) runGivenCommands(t *testing.T, svc *testService, commands string) {
	t.Helper()
	for line := range strings.Lines(commands) {
		line = strings.TrimSpace(line)
		name, command, named := strings.Cut(line, " = ")
		switch {
		case line == "":
		case line == "log stop":
			svc.node.stop()
			svc.node.stop = func() {}
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
func (s *scenario) sendRequest(t *testing.T, svc *testService, text string) []byte {
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
		req.Header[name] = append(req.Header[name], strings.TrimSpace(value)) // the name stays as written
	}
	resp, err := svc.client.Do(req)
	if err != nil {
		t.Fatalf("%s: %v", lines[0], err)
	}
	defer resp.Body.Close()
	response := formatResponse(t, resp)
	if found := regexp.MustCompile(`"curseur": "([^"]+)"`).FindStringSubmatch(response); found != nil {
		s.variables["curseur"] = found[1] // for the next request
	}
	if found := regexp.MustCompile(`"lien": "([^"]+)"`).FindStringSubmatch(response); found != nil {
		s.variables["lien"] = found[1]
	}
	for _, c := range resp.Cookies() {
		s.variables["cookie"], s.variables["secret"] = c.Name+"="+c.Value, c.Value // as a browser sends it from now on
		if found := regexp.MustCompile(`"id": "([^"]+)"`).FindStringSubmatch(response); found != nil {
			s.variables["session"] = found[1]
		}
	}
	return []byte(s.variables.maskValues(response))
}

// isPremature reports whether a request is to be sent again: the instance had no time to poll its log, or a list is behind the
// write before, as it may be after a refusal or on a busy machine.
func (s *scenario) isPremature(svc *testService, when int, answer []byte) bool {
	if svc.node == nil && isKeyRingUnavailable(answer) {
		return true
	}
	follows := s.archive.Files[min(when+1, len(s.archive.Files)-1)]
	return strings.HasPrefix(string(s.archive.Files[when].Data), "area GET") &&
		strings.HasPrefix(follows.Name, "then") && !*update && string(follows.Data) != s.variables.maskValues(string(answer))
}

// isKeyRingUnavailable reports whether the key ring was not fresh. Nothing was done then. How outages are answered has scenarios
// of its own.
func isKeyRingUnavailable(answer []byte) bool {
	return bytes.Contains(answer, []byte("Authentication service unavailable"))
}

// contractHeaders are the headers that scenarios compare.
func contractHeaders() []string {
	return []string{
		"Content-Type", "Content-Disposition", "Allow", "Location", "Retry-After", "X-Request-Id", "Set-Cookie", "Www-Authenticate",
		"Access-Control-Allow-Origin", "Access-Control-Allow-Methods", "Access-Control-Allow-Headers",
		"Access-Control-Max-Age", "Access-Control-Allow-Credentials",
	}
}

// formatResponse formats an answer as scenarios hold it: status, contract headers, body with JSON indented.
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

// variables are texts of a scenario that differ from run to run, by name.
type variables map[string]string

// storeFields stores the texts of an answer as name.field.
func (n variables) storeFields(t *testing.T, name, answer string) {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal([]byte(answer), &fields); err != nil {
		t.Fatalf("%s: %v in %q", name, err, answer)
	}
	for field, value := range fields {
		if text, ok := value.(string); ok {
			n[name+"."+field] = text
		}
	}
	if text, ok := fields["token"].(string); ok {
		n[name] = text
		delete(n, name+".token")
	}
}

// substitute replaces ${name} by its text. ${x*1000} is a thousand x, ${sites 3-5} the rows of three sites, and ${today}
// the day in Paris.
func (n variables) substitute(t *testing.T, text string) string {
	t.Helper()
	return regexp.MustCompile(`\$\{[^}]+\}`).ReplaceAllStringFunc(text, func(found string) string {
		name := found[2 : len(found)-1]
		if value, ok := n[name]; ok {
			return value
		}
		if name == "today" {
			return plan.DateOf(time.Now()).String()
		}
		if span, ok := strings.CutPrefix(name, "sites "); ok {
			return siteRows(t, span)
		}
		part, times, ok := strings.Cut(name, "*")
		count, err := strconv.Atoi(times)
		if !ok || err != nil {
			t.Fatalf("nothing is named %s", found)
		}
		return strings.Repeat(part, count)
	})
}

// siteRows are the rows of the sites of a span such as 3-5, as a body has them.
func siteRows(t *testing.T, span string) string {
	t.Helper()
	var first, last int
	if _, err := fmt.Sscanf(span, "%d-%d", &first, &last); err != nil {
		t.Fatalf("sites %s: %v", span, err)
	}
	var rows []string
	for i := first; i <= last; i++ {
		rows = append(rows, fmt.Sprintf(`{"external_id":"s%03d","nom":"Boutique %d","adresse":{"ligne_1":"1 rue"},"lat":%.3f,"lon":3.5}`, i, i, 44+float64(i)/1000))
	}
	return strings.Join(rows, ",")
}

// maskValues replaces the texts by their names again, the longest first, and then whatever else differs from run to run.
func (n variables) maskValues(text string) string {
	neverMasked := regexp.MustCompile(`\.(label|kind|role|cree_par|account)$`)
	keys := make([]string, 0, len(n))
	for k, v := range n {
		if v != "" && !neverMasked.MatchString(k) {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b string) int {
		if d := len(n[b]) - len(n[a]); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	for _, k := range keys {
		text = strings.ReplaceAll(text, n[k], "${"+k+"}")
	}
	for _, v := range variablePatterns() {
		text = v.pattern.ReplaceAllString(text, v.name)
	}
	return strings.ReplaceAll(text, plan.DateOf(time.Now()).String(), "${today}")
}

// variablePatterns match what differs from run to run without a name.
func variablePatterns() []struct {
	pattern *regexp.Regexp
	name    string
} {
	return []struct {
		pattern *regexp.Regexp
		name    string
	}{
		{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`), "$${time}"},
		{regexp.MustCompile(`ld_(sk|pk|ct|se|ln)_[0-9A-Za-z]{38}`), "ld_${1}_$${token}"},
		{regexp.MustCompile(`ld_(sk|pk|ct)_…[0-9A-Za-z]{4}`), "ld_${1}_…$${end}"},
		{regexp.MustCompile(`__Host-lieudit-[0-9a-f]{8}`), "__Host-lieudit-$${log}"},
		{regexp.MustCompile(`Expires=[^;]+`), "Expires=$${date}"},
		{regexp.MustCompile(`http://localhost:\d+/`), "http://localhost:$${port}/"},
		{regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`), "$${uuid}"},
		{regexp.MustCompile(`"id": "[a-z2-7]{12}"`), `"id": "$${generated}"`},
		{regexp.MustCompile(`"(curseur|hash|proprietaire|programme)": "[^"]+"`), `"$1": "$${$1}"`},
		{regexp.MustCompile(`"version": "[^"]+"`), `"version": "$${version}"`},
		{regexp.MustCompile(`"(position|retard)": \d+`), `"$1": $${$1}`},
		{regexp.MustCompile(`"(score|score_suivant|geocode_score)": 0\.\d+`), `"$1": $${score}`}, // tuned and tested by the engine
	}
}

// TestEveryRouteHasAScenario compares the file names with the routes: get_accounts_id.shows.txtar is a scenario of
// GET /accounts/{id}; files that begin with any. or area. are rules that all routes of a listener share.
func TestEveryRouteHasAScenario(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(scenarioPattern)
	if err != nil {
		t.Fatal(err)
	}
	routes := []string{"any", "area"}
	for _, operation := range slices.Concat(body.API().Operations, body.CustomerArea().Operations) {
		routes = append(routes, routeFileName(operation.Method, operation.Path))
	}
	hasScenario := map[string]bool{}
	for _, file := range files {
		route, _, _ := strings.Cut(filepath.Base(file), ".")
		hasScenario[route] = true
		if !slices.Contains(routes, route) {
			t.Errorf("%s is about no route", file)
		}
	}
	for _, route := range routes {
		if !hasScenario[route] {
			t.Errorf("there is no scenario %s.*.txtar", route)
		}
	}
}

// routeFileName is the beginning of the file names of a route's scenarios.
func routeFileName(method, path string) string {
	words := regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(path, "_")
	return strings.ToLower(method) + strings.TrimSuffix(words, "_")
}

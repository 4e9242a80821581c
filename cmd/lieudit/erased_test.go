package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"lieudit/cmd/lieudit/service"
	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/schemas/body"
	"lieudit/schemas/plan"
)

// This file types a marker into every member of every body that takes a text, through the running service, erases the account,
// and looks for the markers in all that the service has written.

// staysOrTakesNone are the members without a marker: those whose text stays on the log when an account is erased, as their
// descriptions say, and those that can hold no text of a client's own.
var staysOrTakesNone = map[string]string{
	"OpenAccount.id": idStays, "CloseAccount.id": idStays, "EraseAccount.id": idStays, "OpenAccount.agence_de": idStays, "ChangeAgency.agence_de": idStays,
	"IssueToken.account": idStays, "Invite.account": idStays, "AdjustUsage.compte": idStays, "AdjustUsage.contrat": idStays, "Repair.compte": idStays,
	"OpenReferential.code": "a code stays", "Bound.referentiel": "a code stays", "SiteFilter.referentiel": "a code stays",
	"SiteRow.external_id": "an external id stays", "PutSite.external_id": "an external id stays", "PatchSite.external_id": "an external id stays", "Bound.external_id": "an external id stays",
	"IssueKey.origins": "origins stay", "ChangeOrigins.origins": "origins stay", "CheckOrigins.origins": "nothing is kept of it", "TestOrigin.origin": "nothing is kept of it", "IssueKey.remplace": "the id of a key stays",
	"AdjustUsage.cle": "an id", "AdjustUsage.endpoint": "a route", "AdjustUsage.periode": "a day", "ReconcileUsage.period": "a day",
	"NearAddress.citycode": "a number", "NearAddress.code_insee": "a number", "NearAddress.code_postal": "a number", "NearAddress.postcode": "a number", "NearAddress.center": "a position",
	"VerifyAddress.citycode": "a number", "VerifyAddress.code_insee": "a number", "VerifyAddress.postcode": "a number",
	"PatchAddress.code_insee": "five characters", "SiteAddress.code_insee": "five characters",
}

const idStays = "the id of an account stays"

// markers are the texts that were typed, by member.
type markers map[string]string

// of returns the marker of a member.
func (m markers) of(member string) string {
	if m[member] == "" {
		m[member] = fmt.Sprintf("zqx%04dq", 1000+len(m))
	}
	return m[member]
}

// phone is of for a member that takes the digits of a telephone.
func (m markers) phone(member string) string {
	if m[member] == "" {
		m[member] = fmt.Sprintf("06987%05d", 12345+len(m))
	}
	return m[member]
}

// content is a site with a marker in each member of a type and of its address.
func (m markers) content(owner, address string) string {
	of := func(member string) string { return m.of(owner + "." + member) }
	line := func(member string) string { return m.of(address + "." + member) }
	return fmt.Sprintf(`"nom":%q,"adresse":{"ligne_1":%q,"ligne_2":%q,"code_postal":%q,"commune":%q,"pays":%q},"id_ban":%q,"horaires":{"texte":%q},"telephone":%q,`+
		`"email":"%s@exemple.fr","site_web":"https://%s.fr/","tags":[%q],"proprietes":{"%s":"x"},"lat":48.8,"lon":2.3`,
		of("nom"), line("ligne_1"), line("ligne_2"), line("code_postal"), line("commune"), line("pays"), of("id_ban"), of("horaires"), m.phone(owner+".telephone"),
		of("email"), of("site_web"), of("tags"), of("proprietes"))
}

// markedService is a service whose log lines go to a file.
type markedService struct {
	*backedUp
	logFile  string
	postgres string // "" for SQLite
	markers  markers
}

// onEveryEngine runs a test with everything embedded, and again with the log on a node and the databases in Postgres.
func onEveryEngine(t *testing.T, test func(t *testing.T, svc *markedService)) {
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		test(t, startMarked(t, nil, ""))
	})
	t.Run("servers", func(t *testing.T) {
		t.Parallel()
		test(t, startMarked(t, startNode(t), sqldbtest.NewPostgresDatabase(t)))
	})
}

func startMarked(t *testing.T, n *testNode, postgres string) *markedService {
	t.Helper()
	data, logFile := t.TempDir(), filepath.Join(t.TempDir(), "log.txt")
	lines, err := os.Create(logFile)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lines.Close() })
	flags := " --data " + data
	change := func(c *service.Config) {
		c.Data, c.Log = data, slog.New(slog.NewTextHandler(lines, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	if n != nil {
		flags += fmt.Sprintf(" --node %s --postgres %s", n.dir, postgres)
		embedded := change
		change = func(c *service.Config) { embedded(c); withServers(n, postgres)(c) }
	}
	svc := &markedService{&backedUp{startService(t, change), flags, n}, logFile, postgres, markers{}}
	return svc
}

// folders are where the service writes files.
func (svc *markedService) folders() []string {
	all := []string{svc.data, filepath.Dir(svc.logFile)}
	if svc.node != nil {
		all = append(all, svc.node.dir)
	}
	return all
}

// sendMarked sends a request to the customer area, which must be answered with a status, and decodes the answer.
func (svc *markedService) sendMarked(t *testing.T, target, sent string, want int) (answer struct{ ID, Token string }) {
	t.Helper()
	status, text := svc.sendToArea(t, svc.operator, target, sent)
	if status != want || json.Unmarshal([]byte(text), &answer) != nil {
		t.Fatalf("%s %s: %d %s", target, sent, status, text)
	}
	return answer
}

// typeMarkers types a marker into every member that takes one, for the account "marked".
func (svc *markedService) typeMarkers(t *testing.T) {
	t.Helper()
	m := svc.markers
	const id = "marked"
	svc.sendMarked(t, "POST /accounts", fmt.Sprintf(`{"id":%q,"nom":%q,"plan":"BUSINESS"}`, id, m.of("OpenAccount.nom")), 201)
	key := svc.sendMarked(t, "POST /accounts/"+id+"/keys", fmt.Sprintf(`{"kind":"secret","label":%q}`, m.of("IssueKey.label")), 201)
	svc.sendMarked(t, "POST /accounts/"+id+"/keys", fmt.Sprintf(`{"kind":"publishable","label":%q,"origins":["https://exemple.fr"]}`, m.of("IssueKey.label")), 201)
	leaked := svc.sendMarked(t, "POST /accounts/"+id+"/keys", fmt.Sprintf(`{"kind":"secret","label":%q}`, m.of("IssueKey.label")), 201)
	svc.sendMarked(t, "POST /accounts/"+id+"/keys/"+leaked.ID+":revoke", fmt.Sprintf(`{"reason":%q}`, m.of("RevokeKey.reason")), 200)
	area := svc.sendMarked(t, "POST /tokens", fmt.Sprintf(`{"role":"customer","account":%q,"label":%q}`, id, m.of("IssueToken.label")), 201)
	svc.sendMarked(t, "POST /tokens/"+area.ID+":revoke", fmt.Sprintf(`{"reason":%q}`, m.of("RevokeToken.reason")), 200)
	svc.sendMarked(t, "POST /invitations", fmt.Sprintf(`{"role":"customer","account":%q,"label":%q}`, id, m.of("Invite.label")), 201)
	svc.sendMarked(t, "POST /sessions", fmt.Sprintf(`{"preuve":%q}`, m.of("OpenSession.preuve")), 401)
	svc.sendMarked(t, "POST /projections:repair", fmt.Sprintf(`{"compte":%q,"motif":%q}`, id, m.of("Repair.motif")), 200)
	svc.sendMarked(t, "POST /usage:adjust", fmt.Sprintf(`{"contrat":%q,"periode":"2020-01-01","jour":"2020-01-01","cle":"k","endpoint":"GET /me","requetes":1,"reason":%q}`, id, m.of("AdjustUsage.reason")), 404)
	svc.sendMarked(t, "POST /accounts/"+id+":erase", fmt.Sprintf(`{"id":%q,"reason":%q}`, id, m.of("EraseAccount.reason")), 409) // it is open: the refusal is recorded

	svc.mustSend(t, key.Token, "POST /locations/referentiels", fmt.Sprintf(`{"code":"m","nom":%q}`, m.of("OpenReferential.nom")))
	svc.mustSend(t, key.Token, "PATCH /locations/referentiels/m", fmt.Sprintf(`{"nom":%q}`, m.of("RenameReferential.nom")))
	svc.mustSend(t, key.Token, "POST /locations/referentiels/m/sites:sync", `{"sites":[{"external_id":"1",`+m.content("SiteRow", "SiteAddress")+`}]}`)
	svc.mustSend(t, key.Token, "PUT /locations/referentiels/m/sites/2", `{`+m.content("PutSite", "SiteAddress")+`}`)
	svc.mustSend(t, key.Token, "PATCH /locations/referentiels/m/sites/1", `{`+m.content("PatchSite", "PatchAddress")+`}`)
	verify := map[string]string{}
	for _, member := range []string{"numero", "voie", "complement", "code_postal", "commune"} {
		verify[member] = m.of("VerifyAddress." + member)
	}
	parts, _ := json.Marshal(verify)
	svc.send(t, key.Token, "POST /address/verify", string(parts))
	svc.send(t, key.Token, "POST /address/verify", fmt.Sprintf(`{"q":%q}`, m.of("VerifyAddress.q")))
	svc.send(t, key.Token, "GET /locations/search?q="+m.of("VerifyAddress.q"), "")
	svc.send(t, key.Token, "POST /route/nearest", fmt.Sprintf(`{"origins":["2.3,48.8"],"sites":{"tags":[%q]}}`, m.of("SiteFilter.tags")))
	svc.sendMarked(t, "POST /accounts/"+id+":close", fmt.Sprintf(`{"id":%q,"reason":%q}`, id, m.of("CloseAccount.reason")), 200)
}

// find returns where markers are: in files of folders, and in those of the Postgres database, but for its write-ahead log.
func (svc *markedService) find(t *testing.T, folders []string) (found []string) {
	t.Helper()
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			data, err := os.ReadFile(path)
			if os.IsNotExist(err) {
				return nil
			}
			for member, text := range svc.markers {
				if bytes.Contains(data, []byte(text)) {
					found = append(found, member+" in "+path)
				}
			}
			return err
		})
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	return found
}

// findInPostgres is find for the files of the service's database.
func (svc *markedService) findInPostgres(t *testing.T) (found []string) {
	t.Helper()
	if svc.postgres == "" {
		return nil
	}
	texts := slices.Sorted(maps.Values(svc.markers))
	for text, files := range sqldbtest.FilesHolding(t, svc.postgres, texts...) {
		found = append(found, text+" in "+strings.Join(files, ", "))
	}
	return found
}

func TestNothingThatWasTypedIsLeftOnceTheAccountIsErased(t *testing.T) {
	t.Parallel()
	onEveryEngine(t, func(t *testing.T, svc *markedService) {
		svc.typeMarkers(t)
		for _, member := range freeTexts(t) {
			_, isTyped := svc.markers[member]
			if _, isListed := staysOrTakesNone[member]; isTyped == isListed {
				t.Errorf("%s: a marker was typed: %t, it is listed as one that stays or takes none: %t", member, isTyped, isListed)
			}
		}
		databases := append(svc.find(t, []string{svc.data}), svc.findInPostgres(t)...)
		if len(databases) == 0 {
			t.Fatal("no marker is in any file before the erasure: the test shows nothing")
		}
		svc.sendMarked(t, "POST /accounts/marked:erase", fmt.Sprintf(`{"id":"marked","reason":%q}`, svc.markers.of("EraseAccount.reason")), 200)
		var found []string
		defer func() {
			if t.Failed() {
				t.Logf("markers: %q", found)
			}
		}()
		waitUntil(t, "no file holds a marker", func() bool {
			found = append(svc.find(t, svc.folders()), svc.findInPostgres(t)...)
			return len(found) == 0
		})
		if _, history := svc.sendToArea(t, svc.operator, "GET /accounts/marked/history", ""); strings.Contains(history, "zqx") {
			t.Errorf("the history shows %s", history)
		}
		flags, _ := svc.newPlace(t)
		svc.runCommand(t, "restore "+svc.backUp(t)+flags+" --nothing-since")
		var restored []string
		for _, word := range strings.Fields(flags) {
			if filepath.IsAbs(word) {
				restored = append(restored, word)
			}
		}
		if found := svc.find(t, restored); len(found) > 0 || len(restored) == 0 {
			t.Errorf("a later backup, restored to %q, holds %q", restored, found)
		}
	})
}

// freeTexts are the members of the bodies of all operations into which a client may type a text of its own, as Type.member. A
// member with an enum takes none.
func freeTexts(t *testing.T) []string {
	t.Helper()
	found := map[string]bool{}
	for _, op := range append(slices.Clone(body.API().Operations), body.CustomerArea().Operations...) {
		if op.Body != nil {
			walkTexts(t, reflect.TypeOf(op.Body), "", found)
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// walkTexts adds the members of a type that hold texts. owner is the struct that names the members of an embedded one.
func walkTexts(t *testing.T, v reflect.Type, owner string, found map[string]bool) {
	t.Helper()
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Slice && v.Elem().Kind() != reflect.Uint8 || isNullable(v) {
		if isNullable(v) {
			v = v.Field(1).Type
		}
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct || v == reflect.TypeFor[time.Time]() || v == reflect.TypeFor[plan.Date]() || strings.HasSuffix(v.String(), ".Ignored") {
		return
	}
	if owner == "" {
		owner = v.Name()
	}
	for i := range v.NumField() {
		f := v.Field(i)
		member, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous:
			walkTexts(t, f.Type, owner, found)
		case !f.IsExported() || member == "-" || f.Tag.Get("enum") != "":
		case holdsText(f.Type):
			found[owner+"."+member] = true
		default:
			walkTexts(t, f.Type, "", found)
		}
	}
}

func isNullable(v reflect.Type) bool {
	return v.Kind() == reflect.Struct && strings.HasPrefix(v.Name(), "Nullable[")
}

// holdsText reports whether values of a type are texts, lists of texts, or JSON of the client's own.
func holdsText(v reflect.Type) bool {
	for v.Kind() == reflect.Pointer || isNullable(v) || v.Kind() == reflect.Slice && v != reflect.TypeFor[json.RawMessage]() && v.Elem().Kind() != reflect.Uint8 {
		if isNullable(v) {
			v = v.Field(1).Type
		}
		v = v.Elem()
	}
	return v.Kind() == reflect.String || v == reflect.TypeFor[json.RawMessage]()
}

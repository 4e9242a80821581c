package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"lieudit/cmd/lieudit/service"
	"lieudit/schemas/event"
)

// TestDataFoldersOfEarlierProgramsGiveTheSameAnswers opens data folders that earlier programs left, testdata/formats/*.tar.zst,
// and compares every answer, figure and history with what those programs answered themselves. A folder is named after the
// commit of its program. It is made with
//
//	go test ./cmd/lieudit -run TestDataFoldersOfEarlierPrograms -make-datafolder $PWD/cmd/lieudit/testdata/formats/COMMIT.tar.zst
//
// by the program at hand, and the answers next to it by the same program with -update of this test. For an earlier commit this
// file is copied into a work tree of it.
func TestDataFoldersOfEarlierProgramsGiveTheSameAnswers(t *testing.T) {
	t.Parallel()
	if *makeDataFolder != "" {
		packNewDataFolder(t, *makeDataFolder)
		return
	}
	folders, err := filepath.Glob("testdata/formats/*.tar.zst")
	if err != nil || len(folders) == 0 {
		t.Fatalf("no data folders: %v", err)
	}
	for _, packed := range folders {
		commit, _, _ := strings.Cut(filepath.Base(packed), ".")
		t.Run(commit, func(t *testing.T) {
			t.Parallel()
			svc, keys := startOnPackedFolder(t, packed)
			golden, got := strings.TrimSuffix(packed, "tar.zst")+"answers.txt", svc.askForAll(t, keys)
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
				t.Errorf("the answers are others (-before +now):\n%s", diff)
			}
			if got := upgradeStatus(t, svc); got.Format != event.HighestFormat {
				t.Errorf("the log has format %d after the start, want %d", got.Format, event.HighestFormat)
			}
		})
	}
}

// datafolderKeys is what a packed folder says of itself: when it was made, and the keys of its account.
type datafolderKeys struct {
	Made                time.Time
	Secret, Publishable string
}

const keysFile = "keys.json"

// startOnPackedFolder starts a service on a packed folder, in the minute in which the folder was made: periods and days are
// those of then.
func startOnPackedFolder(t *testing.T, packed string) (*testService, datafolderKeys) {
	t.Helper()
	data := filepath.Join(t.TempDir(), "data")
	unpackFolder(t, packed, data)
	if err := os.Remove(filepath.Join(data, "clock")); err != nil && !errors.Is(err, fs.ErrNotExist) { // it may be of this machine, and knows the time since
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(data, keysFile))
	if err != nil {
		t.Fatal(err)
	}
	var keys datafolderKeys
	if err := json.Unmarshal(text, &keys); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	return startService(t, func(c *service.Config) {
		c.Data, c.Now = data, func() time.Time { return keys.Made.Add(time.Since(began)) }
	}), keys
}

// askForAll asks for everything that the service keeps, in the same order each time because requests count, and returns the
// answers as text.
func (svc *testService) askForAll(t *testing.T, keys datafolderKeys) string {
	t.Helper()
	var all strings.Builder
	add := func(target string, status int, answer string) {
		var indented bytes.Buffer
		if json.Indent(&indented, []byte(answer), "", "  ") != nil {
			indented.WriteString(answer)
		}
		fmt.Fprintf(&all, "== %s\n%d\n%s\n", target, status, varying.ReplaceAllString(added.ReplaceAllString(indented.String(), "$2"), `"$1": …`))
	}
	status, answer := svc.sendToArea(t, svc.operator, "POST /usage:reconcile", "{}") // first: it lists the last requests of this instance
	add("POST /usage:reconcile", status, answer)
	for _, target := range []string{
		"GET /me", "GET /locations/referentiels?status=archived", "GET /locations/referentiels/agences/sites?statut=tous", "GET /locations/referentiels/agences/sites:export?format=csv",
		"GET /locations/search?q=roubaix", "GET /address/verify?q=1+impasse+ernest+rochefort+26130",
		"GET /address/autocomplete?q=impasse+ern", "GET /address/proximity?lat=44.348829&lon=4.778814&limit=2",
		"GET /route/compute?origin=2.425,48.867&destination=2.4413928,48.887214&geometry=none", "GET /me",
	} {
		status, answer := svc.send(t, keys.Secret, target, "")
		add(target, status, answer)
	}
	status, answer = svc.send(t, keys.Publishable, "GET /locations/search?q=mairie", "", "Origin: https://www.exemple.fr")
	add("GET /locations/search?q=mairie from a page", status, answer)
	for _, target := range []string{
		"GET /accounts", "GET /accounts/mende", "GET /accounts/mende/keys", "GET /accounts/mende/usage?by=key,endpoint,day", "GET /accounts/mende/history",
		"GET /accounts/mende/state", "GET /accounts/ancien/history", "GET /tokens", "GET /usage?period=2026-11", "GET /vintages", "GET /networks",
	} {
		status, answer := svc.sendToArea(t, svc.operator, target, "")
		add(target, status, answer)
	}
	return all.String()
}

// varying matches what the engine of addresses tunes and tests, and what depends on the moment of the request.
var varying = regexp.MustCompile(`"(score|score_suivant|as_of|utilise_le)": ("[^"]*"|[0-9.]+)`)

// added matches the members that answers have got since the first of these programs.
var added = regexp.MustCompile(`\n *"(auteur_nom|auteur_role)": "[^"]*",|,\n  "position": [0-9]+(\n\})`)

var makeDataFolder = flag.String("make-datafolder", "", "pack a new data folder into this file")

// packNewDataFolder packs the data folder of a service that has accounts, keys, sites, usage, a vintage and a road network.
func packNewDataFolder(t *testing.T, file string) {
	t.Helper()
	svc := startService(t, func(*service.Config) {})
	dir := t.TempDir()
	addresses, roads := filepath.Join(dir, "adresses.csv"), filepath.Join(dir, "roads.osm.pbf")
	for _, line := range []string{
		"ban generate --addresses 400 --out " + addresses, "ban import --millesime 2026-11-01 --data " + svc.data + " " + addresses,
		"roads generate --segments 1500 --out " + roads, "roads import --date 2026-11-02 --data " + svc.data + " " + roads,
		`account open "Mairie de Mende" --plan BUSINESS --quota 5000 --id mende`, `account open "Ancien client" --plan STARTER --id ancien`, "key issue ancien --label kept",
		"account close ancien --yes --reason fin", "account erase ancien --yes --reason demande", "token issue --role auditor --label audit",
	} {
		svc.runCommand(t, line)
	}
	keys := datafolderKeys{
		Secret:      strings.TrimSpace(svc.runCommand(t, "key issue mende --label backend")),
		Publishable: strings.TrimSpace(svc.runCommand(t, "key issue mende --kind publishable --label page --origin https://www.exemple.fr")),
	}
	for _, r := range [][2]string{
		{"POST /locations/referentiels", `{"code":"agences","nom":"Agences"}`}, {"POST /locations/referentiels", `{"code":"fermees"}`},
		{"POST /locations/referentiels/agences/sites:sync", `{"sites":[{"external_id":"r1","nom":"Agence de Roubaix","adresse":{"ligne_1":"1 Impasse Ernest Rochefort","code_postal":"26130","commune":"Saint-Paul-Trois-Châteaux"},"tags":["accueil"]},{"external_id":"r2","nom":"Mairie annexe","lat":50.69,"lon":3.18,"horaires":{"hebdo":[{"jours":["lu"],"de":"09:00","a":"12:00"}]}},{"external_id":"r3","nom":"Roubaix gare"}]}`},
		{"PATCH /locations/referentiels/agences/sites/r2", `{"nom":"Mairie annexe de Roubaix"}`},
		{"POST /locations/referentiels/agences/sites/r3:deactivate", `{}`}, {"DELETE /locations/referentiels/fermees", ""},
		{"GET /me", ""}, {"GET /address/verify?q=1+impasse+ernest+rochefort", ""},
	} {
		if status, answer := svc.send(t, keys.Secret, r[0], r[1]); status/100 != 2 {
			t.Fatalf("%s: %d %s", r[0], status, answer)
		}
	}
	svc.runCommand(t, "usage reconcile") // waits until the read models hold it all
	svc.stop()
	keys.Made = time.Now().UTC().Truncate(time.Second)
	text, err := json.Marshal(keys)
	if err == nil {
		err = os.WriteFile(filepath.Join(svc.data, keysFile), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	packFolder(t, svc.data, file)
}

// packFolder packs the files of a folder. What is made anew at each start is left out.
func packFolder(t *testing.T, folder, file string) {
	t.Helper()
	var packed bytes.Buffer
	compressed, err := zstd.NewWriter(&packed, zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	if err != nil {
		t.Fatal(err)
	}
	archive := tar.NewWriter(compressed)
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := archive.WriteHeader(&tar.Header{Name: filepath.ToSlash(name), Mode: 0o600, Size: int64(len(content)), ModTime: info.ModTime(), Format: tar.FormatPAX}); err != nil {
			return err
		}
		_, err = archive.Write(content)
		return err
	})
	if err := errors.Join(err, archive.Close(), compressed.Close()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, packed.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// unpackFolder unpacks a folder. Zeros, of which the segments of the log are full, become holes of the files.
func unpackFolder(t *testing.T, file, folder string) {
	t.Helper()
	packed, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	plain, err := zstd.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	for archive := tar.NewReader(plain); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(folder, filepath.FromSlash(header.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(writeSparse(path, archive, header.Size), os.Chtimes(path, header.ModTime, header.ModTime)); err != nil {
			t.Fatal(err)
		}
	}
}

// writeSparse writes a file of a size and leaves out the blocks that hold zeros alone.
func writeSparse(path string, content io.Reader, size int64) (err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := f.Truncate(size); err != nil {
		return err
	}
	block, zeros := make([]byte, 64<<10), make([]byte, 64<<10)
	for at := int64(0); at < size; {
		n, err := io.ReadFull(content, block[:min(int64(len(block)), size-at)])
		if err != nil {
			return err
		}
		if !bytes.Equal(block[:n], zeros[:n]) {
			if _, err := f.WriteAt(block[:n], at); err != nil {
				return err
			}
		}
		at += int64(n)
	}
	return nil
}

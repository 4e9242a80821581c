package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// importOutput is what ban import and ban status print with --json.
type importOutput struct {
	Millesime string
	Adresses  int
	Lieux     int `json:"lieux_dits"`
	Fichier   string
	SHA256    string
	Ecartees  int  `json:"lignes_ecartees"`
	Repris    int  `json:"id_ban_repris"`
	Synthetic bool `json:"synthetique"`
}

// mustRun runs a command that must succeed and reads its JSON, if it prints any.
func mustRun(t *testing.T, line string) (result importOutput) {
	t.Helper()
	code, out, stderr := runCommand(t, nil, line)
	if code != 0 {
		t.Fatalf("%s: exit %d: %s", line, code, stderr)
	}
	if strings.HasPrefix(out, "{") {
		if err := json.Unmarshal([]byte(out), &result); err != nil {
			t.Fatal(err)
		}
	}
	return result
}

// generateAddressFile writes invented addresses into a file of a folder and returns its name.
func generateAddressFile(t *testing.T, dir, name, flags string) string {
	t.Helper()
	file := filepath.Join(dir, name)
	mustRun(t, "lieudit ban generate "+flags+" --out "+file)
	return file
}

// vintageFiles are the names of the files in a folder of vintages.
func vintageFiles(t *testing.T, data string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(data, "vintages"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != "lock" {
			names = append(names, e.Name())
		}
	}
	return names
}

func TestBanImportAndStatusShowTheVintage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := generateAddressFile(t, dir, "adresses-2026-10-02.csv.gz", "--addresses 3000")
	got := mustRun(t, "lieudit ban import --json --data "+dir+" "+file)
	if got.Adresses+got.Lieux != 3000 || got.Millesime != "2026-10-02" || !got.Synthetic {
		t.Errorf("imported %+v, want 3000 synthetic rows of the date in the file's name", got)
	}
	mustRun(t, "lieudit ban import --millesime 2026-11-01 --data "+dir+" "+file)
	if got := mustRun(t, "lieudit ban status --json --sha256 --data "+dir); got.Millesime != "2026-11-01" || len(got.SHA256) != 64 {
		t.Errorf("status %+v, want the millésime that was given, and a sum", got)
	}
	_, out, _ := runCommand(t, nil, "lieudit ban status --data "+dir)
	if !strings.Contains(out, "2,9") || !strings.Contains(out, "SYNTHETIC") {
		t.Errorf("status prints %q", out)
	}
}

func TestBanImportWarnsWhereTheMillesimeIsTheFilesDate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	dated := generateAddressFile(t, dir, "adresses-2026-10-02.csv", "--addresses 500")
	undated := generateAddressFile(t, dir, "adresses.csv", "--addresses 500")
	for flags, isWarned := range map[string]bool{undated: true, dated: false, "--millesime 2026-11-01 " + undated: false} {
		code, _, stderr := runCommand(t, nil, "lieudit ban import --json --data "+t.TempDir()+" "+flags)
		if got := strings.Contains(stderr, "warning: the millésime"); code != 0 || got != isWarned || strings.Count(stderr, "\n") > 1 {
			t.Errorf("%s: exit %d, %q", flags, code, stderr)
		}
	}
}

func TestBanStatusWithoutAVintageSaysWhatToDo(t *testing.T) {
	t.Parallel()
	code, _, stderr := runCommand(t, nil, "lieudit ban status --data "+t.TempDir())
	if code != 1 || !strings.Contains(stderr, "lieudit ban import FILE") {
		t.Errorf("exit %d, %q", code, stderr)
	}
}

func TestBanGenerateGivesTheSameBytesForASeed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var made [3][]byte
	for i, flags := range []string{"--seed 7", "--seed 7", "--seed 8"} {
		made[i] = readFile(t, generateAddressFile(t, dir, "a.csv", "--addresses 500 "+flags))
	}
	if !bytes.Equal(made[0], made[1]) || bytes.Equal(made[0], made[2]) {
		t.Error("the bytes do not follow the seed alone")
	}
	code, out, _ := runCommand(t, nil, "lieudit ban generate --addresses 500 --seed 7 --out -")
	if code != 0 || out != string(made[0]) {
		t.Errorf("standard output holds other bytes than the file; exit %d", code)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestBanImportCountsBadRowsAndNamesTheFirst(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := generateAddressFile(t, dir, "a.csv", "--addresses 100")
	text := string(readFile(t, file)) + "short;row\n"
	writeFile(t, file, text)
	code, out, stderr := runCommand(t, nil, "lieudit ban import --data "+dir+" "+file)
	if code != 0 || !strings.Contains(out, "1 bad rows") || !strings.Contains(out, "a.csv:102: too few columns") {
		t.Errorf("exit %d: %s%s", code, out, stderr)
	}
}

func TestBanImportRefusesWhatIsNoBanAndKeepsTheVintage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	good := generateAddressFile(t, dir, "good.csv.gz", "--addresses 500")
	mustRun(t, "lieudit ban import --data "+dir+" "+good)
	before := mustRun(t, "lieudit ban status --json --sha256 --data "+dir)
	packed := readFile(t, good)
	for name, content := range map[string]string{
		"empty.csv": "", "page.csv": "<html>404</html>", "other.csv": "a,b,c\n1,2,3\n", "header.csv": "id;numero;rep;nom_voie;code_postal;code_insee;nom_commune;lon;lat\n",
		"cut.csv.gz": string(packed[:len(packed)/2]), "archive.zip": "PK\x03\x04xxxx", "utf16.csv": "\xff\xfei\x00d\x00",
	} {
		file := filepath.Join(dir, name)
		writeFile(t, file, content)
		files := good + " " + file
		if name == "header.csv" { // next to others a department without rows is one
			files = file
		}
		code, out, stderr := runCommand(t, nil, "lieudit ban import --data "+dir+" "+files)
		if code != 1 || out != "" || !strings.Contains(stderr, "lieudit: ") {
			t.Errorf("%s: exit %d, %q, %q", name, code, out, stderr)
		}
		if after := mustRun(t, "lieudit ban status --json --sha256 --data "+dir); after != before {
			t.Errorf("%s: the vintage is another: %+v, want %+v", name, after, before)
		}
		if left := vintageFiles(t, dir); len(left) != 3 { // the vintage, its sum, the name of the current one
			t.Errorf("%s: left behind: %v", name, left)
		}
	}
}

func TestBanImportInterruptedLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rows := readFile(t, generateAddressFile(t, dir, "a.csv", "--addresses 20000"))
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Write(rows)
		w.(http.Flusher).Flush()
		cancel()
		<-r.Context().Done()
	}))
	defer server.Close()
	var out, stderr bytes.Buffer
	code := newTestProgram(&out, &stderr, nil).Run(ctx, splitWords(t, "lieudit ban import --data "+dir+" "+server.URL+"/a.csv"))
	if code != 1 || stderr.String() != "lieudit: interrupted\n" {
		t.Errorf("exit %d, %q", code, stderr.String())
	}
	if left := vintageFiles(t, dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestBanImportTakesAFinishedVintageByItsSum(t *testing.T) {
	t.Parallel()
	here, there := t.TempDir(), t.TempDir()
	mustRun(t, "lieudit ban import --data "+here+" "+generateAddressFile(t, here, "a.csv", "--addresses 500"))
	built := mustRun(t, "lieudit ban status --json --sha256 --data "+here)
	files := httptest.NewServer(http.FileServer(http.Dir(filepath.Dir(built.Fichier))))
	defer files.Close()
	line := "lieudit ban import --data " + there + " " + files.URL + "/" + filepath.Base(built.Fichier)
	for _, wrong := range []string{"", " --sha256 " + strings.Repeat("0", 64)} {
		if code, _, stderr := runCommand(t, nil, line+wrong); code != 1 || !strings.Contains(stderr, "SHA-256") {
			t.Errorf("%q: exit %d, %q", wrong, code, stderr)
		}
	}
	if left := vintageFiles(t, there); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if code, _, stderr := runCommand(t, nil, "lieudit ban import --sha256 00 --data "+there+" "+filepath.Join(here, "a.csv")); code != 1 || !strings.Contains(stderr, "this is none") {
		t.Errorf("a sum of a CSV file: exit %d, %q", code, stderr)
	}
	mustRun(t, line+" --sha256 "+built.SHA256)
	if got := mustRun(t, "lieudit ban status --json --sha256 --data "+there); got.SHA256 != built.SHA256 || got.Millesime != built.Millesime {
		t.Errorf("taken over %+v, want %+v", got, built)
	}
}

func TestBanImportReplacesADamagedVintageWhenAsked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := generateAddressFile(t, dir, "a.csv", "--addresses 500")
	mustRun(t, "lieudit ban import --data "+dir+" "+file)
	writeFile(t, mustRun(t, "lieudit ban status --json --data "+dir).Fichier, strings.Repeat("x", 1000))
	if code, _, stderr := runCommand(t, nil, "lieudit ban import --data "+dir+" "+file); code != 1 || !strings.Contains(stderr, "--fresh") {
		t.Errorf("exit %d, %q", code, stderr)
	}
	mustRun(t, "lieudit ban import --fresh --data "+dir+" "+file)
}

func readFile(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

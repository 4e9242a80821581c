package browsertest

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// third_party.txt has a line for each package, with its registry, name, version, licence and the checksum of its archive there,
// and after it one for each file taken from it, unchanged.
func TestFilesOfOthersAreUnchangedAndHaveALicence(t *testing.T) {
	t.Parallel()
	listed, licences, folder := map[string]string{}, map[string]bool{}, ""
	list, err := os.Open("third_party.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer list.Close()
	for lines := bufio.NewScanner(list); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) == 5 && fields[0] == "npm" && strings.HasPrefix(fields[4], "sha512-") {
			folder = "third_party/" + fields[1] + "-" + fields[2]
			licences[folder] = false
			continue
		}
		if len(fields) != 2 || !strings.HasPrefix(fields[1], folder+"/") {
			t.Fatalf("unclear line: %s", lines.Text())
		}
		listed[fields[1]] = fields[0]
		licences[folder] = licences[folder] || filepath.Base(fields[1]) == "LICENSE"
	}
	for folder, has := range licences {
		if !has {
			t.Errorf("%s has no licence", folder)
		}
	}
	found := 0
	err = filepath.WalkDir("third_party", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		sum := sha256.Sum256(content)
		if got := hex.EncodeToString(sum[:]); got != listed[filepath.ToSlash(path)] {
			t.Errorf("%s has the checksum %s, listed %q", path, got, listed[filepath.ToSlash(path)])
		}
		found++
		return err
	})
	if err != nil || found != len(listed) || found == 0 {
		t.Errorf("%d files, %d listed: %v", found, len(listed), err)
	}
}

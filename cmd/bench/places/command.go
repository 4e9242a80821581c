package places

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"lieudit/cmd/lieudit/cli"
	"lieudit/cmd/lieudit/service"
	"lieudit/cmd/terminal"
)

// command is the result of a command line of lieudit: its exit code and its output.
type command struct {
	code           int
	stdout, stderr string
}

// runCommand runs a command line of lieudit in this process, as a script does: no terminal, no standard input.
func runCommand(ctx context.Context, env map[string]string, args ...string) command {
	var out, errs bytes.Buffer
	// Without a terminal nothing is asked: a question to the user is an error, which counts as a refusal.
	p := cli.Program{
		Terminal: terminal.Terminal{
			Name: "lieudit", In: strings.NewReader(""), Out: &out, Err: &errs, TimeZone: time.UTC,
			LookupEnv: func(k string) (string, bool) { v, ok := env[k]; return v, ok },
		},
		Version: service.Version(),
		Serve:   service.Run,
	}
	code := p.Run(ctx, append([]string{"lieudit"}, args...))
	return command{code, out.String(), errs.String()}
}

// account is an account of the service and its secret key.
type account struct{ url, key string }

// run runs a command line with the account's key.
func (a account) run(ctx context.Context, args ...string) command {
	return runCommand(ctx, map[string]string{"LIEUDIT_URL": a.url, "LIEUDIT_KEY": a.key}, args...)
}

// importFile runs lieudit sites import.
func (a account) importFile(ctx context.Context, path string, flags ...string) command {
	return a.run(ctx, append([]string{"sites", "import", path, "--referential", referential}, flags...)...)
}

// exportTo runs lieudit sites export into a file.
func (a account) exportTo(ctx context.Context, path string, flags ...string) error {
	c := a.run(ctx, append([]string{"sites", "export", "--referential", referential, "--out", path}, flags...)...)
	if c.code != 0 {
		return errors.New(c.stderr)
	}
	return nil
}

// newAttempt is the result of an import.
func newAttempt(flags []string, path string, c command) Attempt {
	a := Attempt{Flags: flags, Imported: c.code == 0}
	if !a.Imported {
		a.Reason = firstSentence(path, c.stderr)
	}
	return a
}

// firstSentence returns the first line of an error without the names of the program and the file. It keeps the line numbers of the file, as in
// "4: too many cells".
func firstSentence(path, stderr string) string {
	line, _, _ := strings.Cut(strings.TrimPrefix(stderr, "lieudit: "), "\n")
	return strings.TrimLeft(strings.TrimPrefix(line, path), ": ")
}

// proposedFlag matches a flag with its value, quoted or not, within a sentence. A flag at the end of a sentence has none.
var proposedFlag = regexp.MustCompile(`--([a-z]+)(?: (?:'(.+?)'|([A-Za-z0-9][\w:./*]*)))?(?:[\s,;.)]|$)`)

// proposedFlags returns the flags that an error proposes: the first value of each, and every --ignore.
func proposedFlags(stderr string) (flags []string) {
	for _, found := range proposedFlag.FindAllStringSubmatch(stderr, -1) {
		name, value := "--"+found[1], found[2]+found[3]
		switch {
		// This flag alone has no value: the word after it belongs to the sentence.
		case name == "--confirm" && !slices.Contains(flags, name):
			flags = append(flags, name)
		case name == "--confirm" || value == "" || name != "--ignore" && slices.Contains(flags, name):
		default:
			flags = append(flags, name, value)
		}
	}
	return flags
}

// findingLine matches a line about fixed or doubtful values: the word, the count, the kind. The lines of the file follow the kind.
var findingLine = regexp.MustCompile(`(?m)^(mended|doubt) +([\d,]+) × (.*?)(?:, lines? \d.*)?$`)

// parseFindings parses the lines that begin with a word.
func parseFindings(stdout, word string) []Finding {
	found := []Finding{}
	for _, line := range findingLine.FindAllStringSubmatch(stdout, -1) {
		if line[1] == word {
			found = append(found, Finding{line[3], parseCount(line[2])})
		}
	}
	return found
}

// noteLine matches a line about the file. A column called note, in the table, has more spaces after its name.
var noteLine = regexp.MustCompile(`(?m)^note {3}(\S.*)$`)

// parseNotes parses the notes about a file.
func parseNotes(stdout string) []string {
	notes := []string{}
	for _, line := range noteLine.FindAllStringSubmatch(stdout, -1) {
		notes = append(notes, line[1])
	}
	return notes
}

// parseCount parses a number that terminal.GroupThousands formatted.
func parseCount(text string) int {
	n, _ := strconv.Atoi(strings.ReplaceAll(text, ",", "")) // other text is 0: it is not a count
	return n
}

// rowsLine matches the first line of a preview.
var rowsLine = regexp.MustCompile(`^(\d+) rows`)

// parsePreview parses the number of rows in the first line of a preview, and the column BECOMES of its table.
func parsePreview(stdout string) (rows int, c Columns) {
	if found := rowsLine.FindStringSubmatch(stdout); found != nil {
		rows = parseCount(found[1])
	}
	at := -1 // of BECOMES, in characters: the table is aligned by them
	for line := range strings.Lines(stdout) {
		line = strings.TrimRight(line, "\n")
		if head, _, ok := strings.Cut(line, "BECOMES"); ok && strings.HasPrefix(line, "COLUMN ") {
			at = len([]rune(head))
			continue
		}
		// The table ends at the first site.
		if strings.HasPrefix(line, "line ") || len([]rune(line)) <= at {
			break
		}
		if at >= 0 {
			c.count(string([]rune(line)[at:]))
		}
	}
	return rows, c
}

// count counts a column by what it becomes.
func (c *Columns) count(becomes string) {
	switch {
	case strings.HasPrefix(becomes, "proprietes"):
		c.Properties++
	case strings.HasPrefix(becomes, "not stored"):
		c.LeftOut++
	default:
		c.Fields++
	}
}

// sumFile returns the SHA-256 of a file in hexadecimal digits.
func sumFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), err
}

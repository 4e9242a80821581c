package simulate

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

// planted is a fault that is put into a copy of the tree.
type planted struct {
	name  string
	edits []edit
}

// edit replaces a text of a file, which must occur there once. If it occurs several times, a patch needs more context.
type edit struct{ file, old, new string }

// Found is the result of a planted fault.
type Found struct {
	Name string `json:"name"`
	Days int    `json:"days"` // played until then; 0: not found
	Text string `json:"text"` // the rule that was broken, or why the copy could not be played
}

// RunPlanted plants one fault after another and plays each for at most Options.Days, until a rule is broken. only names a single fault to
// plant; "" plants all.
func RunPlanted(ctx context.Context, o Options, only string) (all []Found, err error) {
	faults, err := allPlanted()
	for _, p := range faults {
		if only != "" && !strings.Contains(p.name, only) || ctx.Err() != nil {
			continue
		}
		found, oneErr := runPlanted(ctx, o, p)
		err = errors.Join(err, oneErr)
		all = append(all, found)
		o.Log(fmt.Sprintf("%s: %d days, %s", found.Name, found.Days, found.Text))
	}
	return all, errors.Join(err, ctx.Err())
}

// runPlanted plays a copy of the tree with one fault, until it is found.
func runPlanted(ctx context.Context, o Options, fault planted) (Found, error) {
	folder, err := os.MkdirTemp("", "lieudit-planted-")
	if err != nil {
		return Found{}, err
	}
	defer os.RemoveAll(folder)
	found := Found{Name: fault.name}
	if err := errors.Join(copyTree(ctx, folder, o.Tree), plant(folder, fault.edits)); err != nil {
		found.Text = err.Error()
		return found, err
	}
	o.Tree = folder
	p := player{Options: o, program: filepath.Join(folder, "history"), folder: folder}
	if err := p.build(ctx); err != nil {
		found.Text = err.Error()
		return found, err
	}
	playing, stop := context.WithCancel(ctx)
	defer stop()
	p.Log = func(text string) {
		found.Days, found.Text = p.played, text
		stop() // this ends the other histories too
	}
	p.playAll(playing)
	return found, nil
}

// copyTree copies the files of the module as they are now, except those that git ignores.
func copyTree(ctx context.Context, to, from string) error {
	cmd := exec.CommandContext(ctx, "sh", "-c", `git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$0"`, to)
	cmd.Dir = from
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("copying the tree: %w\n%s", err, out)
	}
	return nil
}

// plant makes the edits in a tree.
func plant(tree string, edits []edit) error {
	for _, e := range edits {
		path := filepath.Join(tree, e.file)
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if n := strings.Count(string(text), e.old); n != 1 {
			return fmt.Errorf("%s: the text to replace stands there %d times: %s", e.file, n, e.old)
		}
		if err := os.WriteFile(path, []byte(strings.Replace(string(text), e.old, e.new, 1)), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// allPlanted returns the faults to plant: those of the list, and one for each patch file.
func allPlanted() ([]planted, error) {
	patches, err := readPatches()
	return append(listPlanted(), patches...), err
}

// patchFiles are faults that others have planted, in git's patch format. The name of a file describes the fault.
//
//go:embed planted/*.patch
var patchFiles embed.FS

// readPatches returns the faults of the folder of patches.
func readPatches() (all []planted, err error) {
	names, err := fs.Glob(patchFiles, "planted/*.patch")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := patchFiles.ReadFile(name)
		if err != nil {
			return nil, err
		}
		edits, err := parsePatch(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		title := strings.TrimSuffix(path.Base(name), ".patch")
		all = append(all, planted{strings.ReplaceAll(title, "-", " "), edits})
	}
	return all, nil
}

// parsePatch returns the edits of a unified diff, one for each hunk. Files must be there before and after.
func parsePatch(text string) (edits []edit, err error) {
	file, isInHunk := "", false
	for line := range strings.Lines(text) {
		last := len(edits) - 1
		switch {
		case strings.HasPrefix(line, "+++ b/"):
			file, isInHunk = strings.TrimSpace(strings.TrimPrefix(line, "+++ b/")), false
		case strings.HasPrefix(line, "@@ "):
			edits, isInHunk = append(edits, edit{file: file}), true
		case strings.HasPrefix(line, "diff "), strings.HasPrefix(line, "--- a/"):
			isInHunk = false
		case !isInHunk, line == "\\ No newline at end of file\n":
		case line == "\n": // an empty context line without its leading blank
			edits[last].old, edits[last].new = edits[last].old+line, edits[last].new+line
		case line[0] == ' ':
			edits[last].old, edits[last].new = edits[last].old+line[1:], edits[last].new+line[1:]
		case line[0] == '-':
			edits[last].old += line[1:]
		case line[0] == '+':
			edits[last].new += line[1:]
		default:
			return nil, fmt.Errorf("no line of a hunk: %q", line)
		}
	}
	if len(edits) == 0 || file == "" {
		return nil, errors.New("no hunk of a file")
	}
	return edits, nil
}

// listPlanted returns faults that this project once had, or of their kind.
func listPlanted() []planted {
	return []planted{
		{"events beside an error are recorded", []edit{{"commands/locations/staging.go",
			"	if err == nil && !alreadyStaged {\n		err = s.stageRows(ctx, c.rows)\n	}\n	if err != nil {\n		return nil, err\n	}\n",
			"	if err == nil && !alreadyStaged {\n		err = s.stageRows(ctx, c.rows)\n	}\n"}}},
		{"the vault makes a new key in silence", []edit{
			{"eventstore/vault/bound.go", "	if f != nil {\n		return nil, b.explainMissingKey(ctx, subject, eventstore.ErrNoKey)\n	}\n", "	_ = f\n"},
			{"eventstore/vault/check.go", "	if len(missing) == 0 {\n		return nil\n	}\n", "	if len(missing) >= 0 {\n		return nil\n	}\n"},
			{"eventstore/vault/bound.go", "	if f != nil && !eventstore.CanUnseal(key, f.stream, f.text) {", "	if f == nil && !eventstore.CanUnseal(key, f.stream, f.text) {"}}},
		{"a tick is appended twice after an unknown outcome", []edit{{"commands/usage/append.go",
			"	if err == nil {\n		err = b.appendUntilFolded(ctx, prepared)\n	}\n",
			"	if err == nil {\n		if _, first := b.meter.store.Append(ctx, b.name, eventstore.Any, prepared.proposed); errors.Is(first, eventstore.ErrUnknown) {\n" +
				"			prepared, err = b.prepareAppend(ctx, tick, b.buildRefunds())\n		}\n	}\n	if err == nil {\n		err = b.appendUntilFolded(ctx, prepared)\n	}\n"}}},
		{"the checkpoint is written outside the rows' transaction", []edit{{"projections/projector/worker.go",
			"	err = w.lease.db.RunInTx(ctx, func(tx *sqldb.Tx) error {\n		if err := w.lease.advanceCheckpoint(ctx, tx, p.Batch); err != nil {\n			return err\n		}\n		var err error\n",
			"	if err := w.lease.db.RunInTx(ctx, func(tx *sqldb.Tx) error { return w.lease.advanceCheckpoint(ctx, tx, p.Batch) }); err != nil {\n		return false, nil, err\n	}\n" +
				"	err = w.lease.db.RunInTx(ctx, func(tx *sqldb.Tx) error {\n		var err error\n"}}},
		{"one instance misses a revocation", []edit{{"projections/keyring/state.go",
			"	case event.KeyRevoked:\n		s.dropKey(token.Hash(e.Hash))\n",
			"	case event.KeyRevoked:\n		if time.Now().UnixMicro()%3 != 0 {\n			s.dropKey(token.Hash(e.Hash))\n		}\n"},
		}},
		{"a lease has no fence", []edit{{"projections/projector/worker.go",
			"		l.db.Now()+\" + ? where position = ? and owner = ?\",", "		l.db.Now()+\" + ? where cast(? as bigint) >= 0 and cast(? as text) <> ''\","}}},
		{"a sync is committed before it is staged", []edit{{"commands/locations/staging.go",
			"		done, err := eventstore.AppendUntilKnown(ctx, s.locations.store, staging, last, batch, eventstore.Resend{})\n		if err != nil {\n			return fmt.Errorf(\"append to %s: %w\", staging, err)\n		}\n		last = done.Revision\n",
			"		go func(expected eventstore.Revision) {\n			time.Sleep(300 * time.Millisecond)\n			eventstore.AppendUntilKnown(context.WithoutCancel(ctx), s.locations.store, staging, expected, batch, eventstore.Resend{})\n		}(last)\n" +
				"		last += eventstore.Revision(len(batch))\n		_ = fmt.Errorf\n"},
			{"commands/locations/staging.go", "import (\n", "import (\n	\"time\"\n"}}},
		{"the key ring's snapshot is older than its position", []edit{
			{"projections/keyring/follow.go", "	return snapshot{r.checkpoint, s.words.all(), s.stoppedStreams().marshal(), s.accounts.snapshot(), s.keys.snapshot(), s.byHash.live}\n",
				"	if r.planted != nil {\n		stale := *r.planted\n		stale.checkpoint = r.checkpoint\n		return stale\n	}\n" +
					"	return snapshot{r.checkpoint, s.words.all(), s.stoppedStreams().marshal(), s.accounts.snapshot(), s.keys.snapshot(), s.byHash.live}\n"},
			{"projections/keyring/follow.go", "	r.notifyPollDone()\n", "	r.notifyPollDone()\n	if s := r.state.Load(); r.planted == nil {\n" +
				"		r.planted = &snapshot{r.checkpoint, s.words.all(), s.stoppedStreams().marshal(), s.accounts.snapshot(), s.keys.snapshot(), s.byHash.live}\n	}\n"},
			{"projections/keyring/ring.go", "	clock func() time.Time // elapsed time\n", "	planted *snapshot\n	clock func() time.Time // elapsed time\n"}}},
		{"a period is closed while a tick is on its way", []edit{
			{"schemas/usagefold/period.go", "	case p.closed, p.ended:\n		return PeriodClosed\n	case p.revokedKeys[key]:\n", "	case p.revokedKeys[key]:\n"},
			{"schemas/usagefold/shared.go", "		case t.State.ended:\n			t.Verdict = PeriodClosed\n", ""},
			{"schemas/usagefold/period.go", "		if _, after := e.(event.UsageAdjusted); after {\n			return Counted\n		}\n",
				"		switch e := e.(type) {\n		case event.UsageAdjusted:\n			return Counted\n		case event.UsageTicked:\n			return p.applyTick(e)\n		}\n"}}},
		{"a refund is made twice", []edit{{"commands/usage/append.go",
			"	for _, r := range refunds {\n		r.InstanceID", "	for _, r := range append(slices.Clone(refunds), refunds...) {\n		r.InstanceID"}}},
		{"a sub-client's volume counts after it left", []edit{{"projections/keyring/state.go",
			"		ok = s.inheritTerms(&t, agency-1, at) && ok\n	}\n",
			"		ok = s.inheritTerms(&t, agency-1, at) && ok\n	} else if left := a.agency.value; left != 0 {\n		own := t.Plan\n" +
				"		s.inheritTerms(&t, left-1, at)\n		t.Plan = own\n	}\n"}}},
		{"a restored log's mark is taken for a good one", []edit{{"projections/keyring/follow.go",
			"	k.adoptState(newState(), eventstore.Checkpoint{})\n",
			"	var end eventstore.Checkpoint\n	ctx, cancel := context.WithTimeout(context.Background(), time.Second)\n	defer cancel()\n	for s, err := range k.store.ReadAll(ctx, end, categories) {\n		if err == nil {\n			end = s.Checkpoint\n		}\n	}\n	k.adoptState(k.state.Load(), end)\n"}}},
		{"a jump of the clock is followed", []edit{{"eventstore/clock/clock.go", "	if difference.Abs() > MaxJump {\n", "	if difference.Abs() > 1<<62 {\n"}}},
	}
}

package harness

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// BuildProgram builds this very program as of a commit, in dir, and returns its path, for WorkDir.WithProgram. The sources are in a temporary
// work tree. It needs git and Go, and a current folder within the repository.
func BuildProgram(ctx context.Context, commit, dir string) (path string, err error) {
	sources, path := filepath.Join(dir, "sources"), filepath.Join(dir, "program")
	if err := runTool(ctx, "", "git", "worktree", "add", "--detach", "--quiet", sources, commit); err != nil {
		return "", err
	}
	defer func() {
		// Not with ctx: the work tree is removed even if the run is interrupted.
		if e := runTool(context.WithoutCancel(ctx), "", "git", "worktree", "remove", "--force", sources); err == nil {
			err = e
		}
	}()
	return path, runTool(ctx, sources, "go", "build", "-o", path, "./cmd/bench")
}

// runTool runs a program in a folder, "" for the current one. Its error includes the program's output.
func runTool(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off")
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, output)
	}
	return nil
}

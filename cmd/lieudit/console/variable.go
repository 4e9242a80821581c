package console

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v3"
)

// variable is an environment variable that a flag mirrors. An empty one counts as not set, as compose files
// leave them.
type variable struct {
	name string
	env  func(string) (string, bool)
}

func (p Program) from(name string) cli.ValueSourceChain {
	return cli.NewValueSourceChain(variable{name, p.Env})
}

func (v variable) Lookup() (string, bool) {
	value, ok := v.env(v.name)
	return value, ok && value != ""
}

func (v variable) IsFromEnv() bool  { return true }
func (v variable) Key() string      { return v.name }
func (v variable) String() string   { return fmt.Sprintf("environment variable %q", v.name) }
func (v variable) GoString() string { return "variable(" + v.name + ")" }

// text is a flag --some-name that LIEUDIT_SOME_NAME mirrors.
func (p Program) text(name, value, usage string) *cli.StringFlag {
	key := "LIEUDIT_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
	return &cli.StringFlag{Name: name, Value: value, Usage: usage, Sources: p.from(key)}
}

func (p Program) dataFlag() cli.Flag {
	f := p.text("data", "./lieudit-data", "`FOLDER` for everything embedded")
	f.TakesFile = true
	return f
}

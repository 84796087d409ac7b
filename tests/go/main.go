// Reads YAML documents as kubectl does. One JSON string a line comes in, a document each; one line goes out for each:
// {"value": ...} or {"error": "..."}.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"sigs.k8s.io/yaml"
)

type answer struct {
	Value json.RawMessage `json:"value,omitempty"`
	Error string          `json:"error,omitempty"`
}

func read(text string) (answer answer) {
	// go-yaml panics on some texts that are no YAML.
	defer func() {
		if problem := recover(); problem != nil {
			answer.Value, answer.Error = nil, fmt.Sprint("panic: ", problem)
		}
	}()
	// kubectl reads a file line by line and puts an end to each, the last one included, before any YAML is parsed
	// (k8s.io/apimachinery/pkg/util/yaml, LineReader and YAMLReader).
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	value, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		answer.Error = err.Error()
		return answer
	}
	answer.Value = value
	return answer
}

func main() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 64<<20)
	out := json.NewEncoder(os.Stdout)
	for in.Scan() {
		var text string
		if err := json.Unmarshal(in.Bytes(), &text); err != nil {
			panic(err)
		}
		// Not every value that goes in can be written: one may nest too deep.
		if err := out.Encode(read(text)); err != nil {
			if err := out.Encode(answer{Error: err.Error()}); err != nil {
				panic(err)
			}
		}
	}
	if err := in.Err(); err != nil {
		panic(err)
	}
}

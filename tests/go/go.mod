// A reader of YAML 1.1 as kubectl has it, for tests/readers.rs.
module podgraft.dev/tests/reader

go 1.24

require sigs.k8s.io/yaml v1.6.0

require go.yaml.in/yaml/v2 v2.4.2 // indirect

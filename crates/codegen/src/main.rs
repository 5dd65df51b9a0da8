//! Writes the generated files of the messages crate.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    match run(&root) {
        Ok(count) => {
            println!("{count} files written to crates/messages/src/gen");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("kafka-share-codegen: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(root: &Path) -> Result<usize, kafka_share_codegen::Error> {
    let files = kafka_share_codegen::generate(&root.join("protocol-specs"))?;
    let dir = root.join("crates/messages/src/gen");
    let io = |e| kafka_share_codegen::Error::Io(dir.clone(), e);
    if dir.exists() {
        std::fs::remove_dir_all(&dir).map_err(io)?;
    }
    std::fs::create_dir_all(&dir).map_err(io)?;
    for (name, text) in &files {
        std::fs::write(dir.join(name), text).map_err(io)?;
    }
    Ok(files.len())
}
